/** Loads every content, with a signature if there is one; answers "" or why it was refused. */
import { readFileSync } from "node:fs";

const { Refused, load } = await import(process.env.CLIENT);
const answers = [];
for (const { content, hex, ...signed } of JSON.parse(readFileSync(0, "utf8"))) {
  try {
    const given = hex === undefined ? content : Buffer.from(hex, "hex");
    await (Object.keys(signed).length ? load(given, signed) : load(given));
    answers.push("");
  } catch (error) {
    answers.push(error instanceof Refused ? error.message : `not refused but failed: ${error.stack}`);
  }
}
console.log(JSON.stringify(answers));
