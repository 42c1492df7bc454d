/** The messages of users with these values, by the platform's bits. */
import { readFileSync } from "node:fs";

const { Randomizer, load } = await import(process.env.CLIENT);
const { content, values } = JSON.parse(readFileSync(0, "utf8"));
const randomizer = new Randomizer(await load(content));
console.log(JSON.stringify(values.flatMap((value) => randomizer.randomize(value))));
