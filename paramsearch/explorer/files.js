// Files and commands that leave the page.

const byId = (id) => document.getElementById(id);

const baseName = (row) => row.file.split("/").at(-1);

/** The file of a row, as it is in the table's folder. */
async function fileBytes(row) {
  const packed = Uint8Array.from(atob(DATA.files[row.file]), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Whether the table's file is for so many users. */
const isStored = (row, n) => DATA.users[row.file] === n;

async function download(row, n) {
  if (!isStored(row, n)) return;
  const address = URL.createObjectURL(new Blob([await fileBytes(row)], { type: "application/json" }));
  html("a", { href: address, download: baseName(row) }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

async function copy(button) {
  const code = byId(button.dataset.copies);
  try {
    await navigator.clipboard.writeText(code.textContent);
  } catch {
    getSelection().selectAllChildren(code); // where a page may not write: ready for the keyboard
    byId("copied").textContent = "The command is selected.";
    return;
  }
  button.textContent = "Copied";
  byId("copied").textContent = "The command is copied.";
  setTimeout(() => { button.textContent = "Copy"; }, 1500);
}
