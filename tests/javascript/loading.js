/** Loads every content, with a signature if there is one; answers "" or why it was refused. */
import { readFileSync } from "node:fs";

const { Refused, load } = await import(process.env.CLIENT);
const answers = [];
for (const { content, hex, ...signed } of JSON.parse(readFileSync(0, "utf8"))) {
  try {
    await load(hex === undefined ? content : Buffer.from(hex, "hex"), signed);
    answers.push("");
  } catch (error) {
    answers.push(error instanceof Refused ? error.message : `not refused but failed: ${error.stack}`);
  }
}
console.log(JSON.stringify(answers));
