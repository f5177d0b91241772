/* Python in a worker, from the snapshot that prepare.mjs made or, as worker.js?numpy, with NumPy: one command line of irtool at a time. The page sends a file and command lines,
   {id, name, data, check, view}; the worker answers {id, part, code, out, err, page} for the check and, if that has no error, the view. */
import { loadPyodide } from "./pyodide/pyodide.mjs";

const bytes = async (name) => new Uint8Array(await (await fetch(name)).arrayBuffer());

async function start() {
  const folder = await (await fetch("folder.json")).json();
  const options = { indexURL: new URL("pyodide/", self.location.href).href };
  const hasNumPy = self.location.search === "?numpy";
  if (!hasNumPy) options._loadSnapshot = bytes("snapshot.bin");
  const packages = bytes("packages.zip"), python = await loadPyodide(options);
  python.unpackArchive(await packages, "zip", { extractDir: "/packages" });
  python.FS.mkdirTree("/playground");
  python.FS.chdir("/playground");
  if (!hasNumPy) return python;
  const files = folder.compiled.map((name) => name.includes(".") ? options.indexURL + name : name);
  await python.loadPackage(files, { messageCallback: () => {} });
  python.runPython(new TextDecoder().decode(await bytes("answer.py")));
  return python;
}

const ready = start();
ready.then(() => postMessage({ part: "ready" }), (error) => postMessage({ part: "failed", err: String(error) }));
let newest = 0, isWarm = false;

const turn = () => new Promise((go) => setTimeout(go));

// Load what gradients need, a module at a time, while nobody asks for anything else.
async function warm(python) {
  if (isWarm) return;
  isWarm = true;
  const families = python.runPython("from irtool.ops import FAMILIES; FAMILIES").toJs();
  for (const part of ["kernels", "gradients"]) {
    for (const family of families) {
      await turn();
      python.runPython(`import importlib.util
if importlib.util.find_spec("irtool.ops.${part}.${family}"): import irtool.ops.${part}.${family}`);
    }
  }
  postMessage({ part: "warm" });
}

// The answer to command lines, each of which reads what the one before it has printed.
function answered(python, lines) {
  const answer = python.globals.get("answer");
  let last = [0, "", "", null], err = "";
  for (const words of lines) {
    const list = python.toPy(words), done = answer(list, last[1]);
    last = done.toJs();
    list.destroy();
    done.destroy();
    err += last[2];
    if (last[0]) break;
  }
  answer.destroy();
  return { code: last[0], out: last[1], err, page: last[3] };
}

onmessage = async ({ data }) => {
  newest = data.id;
  const python = await ready;
  await turn();     // what has come meanwhile is newer
  if (data.id !== newest) return;
  try {
    python.FS.writeFile("/playground/" + data.name, data.data);
    const check = answered(python, data.check);
    postMessage({ id: data.id, part: "check", ...check });
    await turn();
    if (check.code || data.id !== newest) return;
    postMessage({ id: data.id, part: "view", ...answered(python, data.view) });
    await warm(python);
  } catch (error) {
    postMessage({ id: data.id, part: "failed", err: String(error) });
  }
};
