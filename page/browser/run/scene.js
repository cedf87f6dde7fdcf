// A fabric as the server describes it: nodes, cables, paths, uSID lists. Knows nothing of time or of screens.

export class Scene {
  constructor(told) {
    this.plan = told.plan;
    this.options = told.options;
    this.kinds = told.kinds;
    this.nodes = told.nodes.map(([name, tier, plane, x, y, usid]) => ({ name, tier, plane, x, y, usid }));
    this.byName = new Map(this.nodes.map((node) => [node.name, node]));
    this.cables = told.cables.map(([a, b, aPort, bPort, rate]) => ({
      a, b, aPort, bPort, rate, name: `${a}-${b}`, edge: this.byName.get(a).tier === 0, plane: this.byName.get(b).plane,
    }));
    this.byCable = new Map(this.cables.map((cable) => [cable.name, cable]));
    this.hosts = this.nodes.filter((node) => node.tier === 0);
    this.leaves = new Map(this.hosts.map((host) => [host.name, []]));
    for (const cable of this.cables) if (cable.edge) this.leaves.get(cable.a)[cable.plane] = cable.b;
    this.leafOf = new Map(this.hosts.map((host, index) => [host.name, told.ways.leaf_of[index]]));
    this.listOf = told.ways.of;
    this.lists = told.ways.lists.map((rows) => rows.map(([evs, between, plane]) => ({ ev: evs[0], evs, between, plane })));
    this.ofEv = this.lists.map((ways) => new Map(ways.flatMap((way) => way.evs.map((ev) => [ev, way]))));
  }

  // The cable of a target such as p0l0-p0s0, p0s0>p0l0 or h3.p2.
  cableOf(target) {
    const nic = /^(h\d+)\.p(\d+)$/.exec(target);
    if (nic) return this.cables.find((cable) => cable.a === nic[1] && cable.plane === Number(nic[2]));
    const [one, other] = target.split(/[-–>]/);
    return this.byCable.get(`${one}-${other}`) ?? this.byCable.get(`${other}-${one}`);
  }

  // The place of the list of ways between the leaves of two hosts.
  placeOf(source, destination) {
    return this.listOf[this.leafOf.get(source)][this.leafOf.get(destination)];
  }

  // Every path of a pair of hosts, plane by plane: EV, what the EV chose (null under one leaf), nodes. Of the EVs that
  // name one path, the first is the path's.
  paths(source, destination) {
    return this.lists[this.placeOf(source, destination)].map((way) => this.path(source, destination, way));
  }

  path(source, destination, { ev, between, plane }) {
    const first = this.leaves.get(source)[plane], last = this.leaves.get(destination)[plane];
    const switches = first === last ? [first] : [first, ...between, last];
    const via = switches.slice(1, 1 + Math.floor(switches.length / 2)).join("+") || null;
    return { source, destination, plane, via, ev, switches, nodes: [source, ...switches, destination] };
  }

  // The path that an EV takes; null for one that names none.
  pathOfEv(source, destination, ev) {
    const way = this.ofEv[this.placeOf(source, destination)].get(ev);
    return way ? this.path(source, destination, way) : null;
  }

  // The EV by which this page knows a path: several EVs may name the same one.
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
    return words.length < 7 ? `${text}::` : words.length < 8 ? `${text}:0` : text; // RFC 5952: one zero is written out
  }
}
