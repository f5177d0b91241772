/* Makes two files of the playground's folder: packages.zip, the wheels unpacked and compiled; snapshot.bin, the memory of a Python that has
   already loaded irtool and run some commands, from which a page starts in a fraction of the time.

       node prepare.mjs FOLDER */
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const folder = path.resolve(process.argv[2]);
const { loadPyodide } = await import(pathToFileURL(path.join(folder, "pyodide", "pyodide.mjs")));
const { wheels } = JSON.parse(fs.readFileSync(path.join(folder, "folder.json"), "utf8"));
const options = { indexURL: path.join(folder, "pyodide") };
const COMPILE = `
import compileall, os, py_compile, shutil

assert compileall.compile_dir("/packages", quiet=1, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
shutil.make_archive("/tmp/packages", "zip", "/packages")
`;
const ANSWER = fs.readFileSync(path.join(folder, "answer.py"), "utf8");
const TEXT = "graph(%x : Float(2, 3)):\n  %1 : Tensor = aten::tanh(%x)\n  return (%1)\n";
const WARM = [      // what is run before the snapshot: the most that fits into the memory that a page begins with
  [["opt"], ["fmt"], ["show", "--passes=O1", "-o", "page.html"], ["stats"], ["decompile"]],
  [["opt"], ["show", "-o", "page.html"]],
  [["opt"]],
  [],
];

const first = await loadPyodide(options);
for (const wheel of wheels) first.unpackArchive(new Uint8Array(fs.readFileSync(path.join(folder, wheel))), "wheel", { extractDir: "/packages" });
first.runPython(COMPILE);
const packages = first.FS.readFile("/tmp/packages.zip");
fs.writeFileSync(path.join(folder, "packages.zip"), packages);
for (const wheel of wheels) fs.unlinkSync(path.join(folder, wheel));

for (const commands of WARM) {
  const python = await loadPyodide({ ...options, _makeSnapshot: true });
  const size = python._module.HEAP8.length;
  python.unpackArchive(packages, "zip", { extractDir: "/packages" });
  python.runPython(ANSWER);
  for (const words of commands) {
    const [code, , err] = python.runPython("answer")(python.toPy(words), TEXT);
    if (code) throw new Error(words.join(" ") + ": " + err);
  }
  python.runPython("import gc; gc.collect()");
  if (python._module.HEAP8.length > size) continue;
  fs.writeFileSync(path.join(folder, "snapshot.bin"), python.makeMemorySnapshot());
  break;
}
