// Loaded with `node --import` before anything that an old Node cannot parse.
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major < 22 || (major === 22 && minor < 19)) {
  console.error(
    `kube-bootstrap-controller needs Node.js 22.19 or later and this is ${process.version} (${process.execPath}): install a later one; in the repository, run it through npm after "npm ci", which brings Node 24.`,
  );
  process.exit(1);
}
