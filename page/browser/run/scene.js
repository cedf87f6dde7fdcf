// A fabric as the server describes it: nodes, cables, paths, uSID lists. Knows nothing of time or of screens.

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
    this.leaves = new Map(this.hosts.map((host) => [host.name, []]));
    for (const cable of this.cables) if (cable.edge) this.leaves.get(cable.a)[cable.plane] = cable.b;
    this.across = told.evs.across;
    this.local = told.evs.local;
    this.spineOfEv = new Map(this.across);
    this.planeOfEv = new Map(this.local);
  }

  // The cable of a target such as p0l0-p0s0, p0s0>p0l0 or h3.p2.
  cableOf(target) {
    const nic = /^(h\d+)\.p(\d+)$/.exec(target);
    if (nic) return this.cables.find((cable) => cable.a === nic[1] && cable.plane === Number(nic[2]));
    const [one, other] = target.split(/[-–>]/);
    return this.byCable.get(`${one}-${other}`) ?? this.byCable.get(`${other}-${one}`);
  }

  underOneLeaf(source, destination) {
    return this.leaves.get(source)[0] === this.leaves.get(destination)[0];
  }

  // Every path of a pair of hosts, plane by plane: EV, spine (null under one leaf), nodes. Of the EVs that name one
  // path under a leaf, the first is the path's.
  paths(source, destination) {
    if (!this.underOneLeaf(source, destination)) return this.across.map(([ev, via]) => this.path(source, destination, ev, this.byName.get(via).plane, via));
    const first = this.local.filter(([, plane], place) => place === 0 || this.local[place - 1][1] !== plane);
    return first.map(([ev, plane]) => this.path(source, destination, ev, plane, null));
  }

  path(source, destination, ev, plane, via) {
    const first = this.leaves.get(source)[plane], last = this.leaves.get(destination)[plane];
    const switches = via === null ? [first] : [first, via, last];
    return { source, destination, plane, via, ev, switches, nodes: [source, ...switches, destination] };
  }

  // The path that an EV takes; null for one that names none.
  pathOfEv(source, destination, ev) {
    const local = this.underOneLeaf(source, destination);
    const plane = local ? this.planeOfEv.get(ev) : this.byName.get(this.spineOfEv.get(ev))?.plane;
    if (plane === undefined) return null;
    if (!local) return this.path(source, destination, ev, plane, this.spineOfEv.get(ev));
    return this.path(source, destination, this.local.find(([, other]) => other === plane)[0], plane, null);
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
