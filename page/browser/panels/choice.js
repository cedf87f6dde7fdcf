// What is chosen on the page: a node, a cable, a pair of hosts with one of its paths, or nothing.

export class Choice {
  constructor() {
    this.clear();
  }

  clear() {
    this.node = this.cable = this.pair = null;
    this.ev = null;
    this.lane = 0; // in a race: whose node or cable it is
  }

  get target() {
    return this.node?.name ?? this.cable?.name ?? this.pair?.join(" ") ?? "";
  }

  // A click on something; a host after another host makes a pair.
  take(found, scene) {
    const before = this.node;
    if (found?.node?.tier === 0 && before?.tier === 0 && before.name !== found.node.name) this.choosePair(scene, before.name, found.node.name);
    else {
      this.clear();
      this.node = found?.node ?? null;
      this.cable = found?.cable ?? null;
    }
  }

  choosePair(scene, source, destination) {
    const { lane } = this;
    this.clear();
    this.lane = lane;
    this.pair = [source, destination];
    this.ev = scene.paths(source, destination)[0].ev;
  }

  // By name, as typed; false when nothing is called so.
  find(text, scene) {
    const words = text.trim().split(/\s+|→/).filter(Boolean);
    const [one, other] = words.map((word) => scene.byName.get(word));
    if (words.length === 2 && one?.tier === 0 && other?.tier === 0 && one !== other) this.choosePair(scene, one.name, other.name);
    else if (words.length === 1 && one) this.take({ node: one }, scene);
    else if (words.length === 1 && scene.cableOf(words[0])) this.take({ cable: scene.cableOf(words[0]) }, scene);
    else return false;
    return true;
  }

  nextPath(scene, by) {
    if (!this.pair) return;
    const paths = scene.paths(...this.pair);
    const place = paths.findIndex((path) => path.ev === this.ev);
    this.ev = paths[(place + by + paths.length) % paths.length].ev;
  }
}
