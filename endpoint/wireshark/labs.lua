-- Names for the packets of two SRv6 labs that spray without RDMA, so that their captures can be read beside ours.
--
--   tshark -X lua_script:endpoint/wireshark/labs.lua -r their.pcap
--
-- srv6-ai-fabric (and srv6-mrc-emulator): sprayed data on UDP port 9999, probes on 9998, loss reports on 9997.
-- mrc-srv6-fabric: sprayed data on 5202, answers on 5210; only their first four letters are read.

local lab = Proto("srv6lab", "SRv6 lab")

local KINDS = { [0xA5] = "PROBE", [0xA6] = "PROBE_REPLY", [0xA7] = "LOSS_REPORT" }

local fields = {
  kind = ProtoField.uint8("srv6lab.kind", "Kind", base.HEX, KINDS),
  word = ProtoField.string("srv6lab.word", "Word"),
  version = ProtoField.uint8("srv6lab.version", "Version"),
  request = ProtoField.uint16("srv6lab.request", "Request"),
  window = ProtoField.uint16("srv6lab.window", "Window"),
  plane = ProtoField.uint8("srv6lab.plane", "Plane"),
  sequence = ProtoField.uint64("srv6lab.sequence", "Sequence number"),
  sent = ProtoField.uint64("srv6lab.sent_ns", "Sent (ns)"),
  service = ProtoField.uint64("srv6lab.service_ns", "Service time (ns)"),
  seen = ProtoField.uint32("srv6lab.seen", "Packets seen"),
  expected = ProtoField.uint32("srv6lab.expected", "Packets expected"),
  gap = ProtoField.uint32("srv6lab.max_gap", "Longest gap"),
}
for _, field in pairs(fields) do
  table.insert(lab.fields, field)
end

local function name(pinfo, text)
  pinfo.cols.protocol = "SRv6 lab"
  pinfo.cols.info = text
end

local function data(tvb, pinfo, tree)
  if tvb:len() ~= 41 then return 0 end
  tree = tree:add(lab, tvb())
  tree:add(fields.sequence, tvb(0, 8))
  tree:add(fields.plane, tvb(8, 1))
  name(pinfo, string.format("DATA %s plane %d", tvb(0, 8):uint64(), tvb(8, 1):uint()))
  return 41
end

local function probe(tvb, pinfo, tree)
  local kind = tvb:len() >= 28 and tvb(0, 1):uint()
  if kind ~= 0xA5 and kind ~= 0xA6 then return 0 end
  tree = tree:add(lab, tvb())
  tree:add(fields.kind, tvb(0, 1))
  tree:add(fields.version, tvb(1, 1))
  tree:add(fields.request, tvb(2, 2))
  tree:add(fields.plane, tvb(4, 1))
  tree:add(fields.sent, tvb(6, 8))
  tree:add(fields.service, tvb(14, 8))
  name(pinfo, string.format("%s %d plane %d", KINDS[kind], tvb(2, 2):uint(), tvb(4, 1):uint()))
  return 28
end

local function report(tvb, pinfo, tree)
  local planes = tvb:len() >= 8 and tvb(0, 1):uint() == 0xA7 and tvb(4, 2):uint()
  if not planes or tvb:len() < 8 + 16 * planes then return 0 end
  tree = tree:add(lab, tvb())
  tree:add(fields.kind, tvb(0, 1))
  tree:add(fields.version, tvb(1, 1))
  tree:add(fields.window, tvb(2, 2))
  for at = 8, 8 + 16 * (planes - 1), 16 do
    tree:add(fields.plane, tvb(at, 1))
    tree:add(fields.seen, tvb(at + 4, 4))
    tree:add(fields.expected, tvb(at + 8, 4))
    tree:add(fields.gap, tvb(at + 12, 4))
  end
  name(pinfo, string.format("LOSS_REPORT %d, %d planes", tvb(2, 2):uint(), planes))
  return 8 + 16 * planes
end

local function word(tvb, pinfo, tree)
  local first = tvb:len() >= 4 and tvb(0, 4):string()
  if first ~= "MRC1" and first ~= "NAK1" and first ~= "ACK1" then return 0 end
  tree = tree:add(lab, tvb())
  tree:add(fields.word, tvb(0, 4))
  name(pinfo, first)
  return 4
end

local PORTS = { [9999] = data, [9998] = probe, [9997] = report, [5202] = word, [5210] = word }

function lab.dissector(tvb, pinfo, root)
  local read = PORTS[pinfo.dst_port]
  if not read then return 0 end
  return read(tvb, pinfo, root)
end

for port in pairs(PORTS) do
  DissectorTable.get("udp.port"):add(port, lab)
end
