/** Many users with the value 0 and the platform's bits: how often a user sends each number of messages
 * with the value "watched", how many users send nothing, and the sum of the messages of each group. */
import { readFileSync } from "node:fs";

const { Randomizer, load } = await import(process.env.CLIENT);
const { content, groups, users, watched } = JSON.parse(readFileSync(0, "utf8"));
const randomizer = new Randomizer(await load(content));
const counts = [], sums = [];
let silent = 0;
for (let group = 0; group < groups; group++) {
  let sum = 0;
  for (let user = 0; user < users; user++) {
    const values = randomizer.randomize(0).map((symbol) => randomizer.message(symbol)[1]);
    const found = values.filter((value) => value === watched).length;
    counts[found] = (counts[found] ?? 0) + 1;
    silent += values.length === 0;
    for (const value of values) sum += value;
  }
  sums.push(sum);
}
console.log(JSON.stringify({ counts: Array.from(counts, (x) => x ?? 0), silent, sums }));
