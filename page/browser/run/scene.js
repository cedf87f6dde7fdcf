// A fabric as the server describes it: nodes, cables, paths, uSID lists. Knows nothing of time or of screens.

const EV_SPINE_BASE = 0xc000;
const EV_LOCAL = 0xffff;

export class Scene {
  constructor(told) {
    this.plan = told.plan;
    this.options = told.options;
    this.kinds = told.kinds;
    this.nodes = told.nodes.map(([name, tier, plane, x, y, usid]) => ({ name, tier, plane, x, y, usid }));
    this.byName = new Map(this.nodes.map((node) => [node.name, node]));
    this.cables = told.cables.map(([a, b, aPort, bPort]) => ({
      a, b, aPort, bPort, name: `${a}-${b}`, edge: this.byName.get(a).tier === 0, plane: this.byName.get(b).plane,
    }));
    this.byCable = new Map(this.cables.map((cable) => [cable.name, cable]));
    this.hosts = this.nodes.filter((node) => node.tier === 0);
  }

  // The cable of a target such as p0l0-p0s0, p0s0>p0l0 or h3.p2.
  cableOf(target) {
    const nic = /^(h\d+)\.p(\d+)$/.exec(target);
    if (nic) return this.cables.find((cable) => cable.a === nic[1] && cable.plane === Number(nic[2]));
    const [one, other] = target.split(/[-–>]/);
    return this.byCable.get(`${one}-${other}`) ?? this.byCable.get(`${other}-${one}`);
  }

  leafIndex(host) {
    return Math.floor(Number(host.slice(1)) / this.plan.hosts_per_leaf);
  }

  // Every path of a pair of hosts, plane by plane, as topo/path.py has them: EV, spine (null under one leaf), nodes.
  paths(source, destination) {
    const local = this.leafIndex(source) === this.leafIndex(destination);
    const found = [];
    for (let plane = 0; plane < this.plan.planes; plane++) {
      for (let spine = 0; spine < (local ? 1 : this.plan.spines); spine++) {
        found.push(this.path(source, destination, plane, local ? null : spine));
      }
    }
    return found;
  }

  path(source, destination, plane, spine) {
    const first = `p${plane}l${this.leafIndex(source)}`;
    const via = spine === null ? null : `p${plane}s${spine}`;
    const switches = via === null ? [first] : [first, via, `p${plane}l${this.leafIndex(destination)}`];
    const ev = plane * 65536 + (spine === null ? EV_LOCAL : EV_SPINE_BASE + spine);
    return { source, destination, plane, via, ev, switches, nodes: [source, ...switches, destination] };
  }

  // The path that an EV takes; null for one that names none.
  pathOfEv(source, destination, ev) {
    const plane = Math.floor(ev / 65536), low = ev % 65536;
    const local = this.leafIndex(source) === this.leafIndex(destination);
    const spine = low - EV_SPINE_BASE;
    if (plane >= this.plan.planes || (!local && (spine < 0 || spine >= this.plan.spines))) return null;
    return this.path(source, destination, plane, local ? null : spine);
  }

  // The EV by which this page knows a path: under one leaf as many EVs as there are spines name the same one.
  knownEv(source, destination, ev) {
    return this.pathOfEv(source, destination, ev)?.ev ?? ev;
  }

  // The outer destination as the packet leaves each node of the path: the uSID list, which loses one at each switch.
  uSidLists(path) {
    const usids = [...path.switches.map((name) => this.byName.get(name).usid), this.byName.get(path.destination).usid];
    return [path.source, ...path.switches].map((node, place) => ({ node, usids: usids.slice(place), address: this.address(usids.slice(place)) }));
  }

  address(usids) {
    const words = [this.plan.usid_block.slice(0, 4), this.plan.usid_block.slice(4)];
    for (const usid of usids) words.push(usid.toString(16));
    const text = words.map((word) => word.replace(/^0+(?=.)/, "")).join(":");
    return words.length < 8 ? `${text}::` : text;
  }
}
