-- Wireshark dissector for Multipath Reliable Connection (OCP MRC 1.0) over SRv6 micro-segments.
--
--   tshark -X lua_script:endpoint/wireshark/mrc.lua -r h0.pcap
--   (as an ordinary user: Wireshark 4.4 and later load no scripts for root, without a word)
--   or copy this file to the personal Lua plugin folder (Help > About > Folders)
--   MRC-Client's reading of the specification: -o mrc.dialect:mrc-client (docs/reference/dialects.md)
--
-- Written from the header layouts alone. RoCEv2 packets on the same UDP port go to Wireshark's own dissector.
-- Filters: mrc.opcode, mrc.psn, mrc.ev, mrc.usid, mrc.nack.reason, mrc.trimmed, mrc.icrc.status ...

local bitlib = bit or bit32 or require("bit")
local band, bxor, rshift = bitlib.band, bitlib.bxor, bitlib.rshift

local mrc = Proto("mrc", "Multipath Reliable Connection")

mrc.prefs.udp_ports = Pref.range("UDP ports", "4791,4971", "RoCEv2's port and the one that OCP MRC 1.0 prints", 65535)
mrc.prefs.dialect = Pref.string("Dialect", "default", "default or mrc-client, as the setting of the transport")
mrc.prefs.check_icrc = Pref.bool("Check the ICRC", true, "Costs time on captures of millions of full packets")

local OPCODES = {
  [0xC6] = "WRITE_FIRST", [0xC7] = "WRITE_MIDDLE", [0xC8] = "WRITE_LAST", [0xC9] = "WRITE_LAST_IMM",
  [0xCA] = "WRITE_ONLY", [0xCB] = "WRITE_ONLY_IMM", [0xD1] = "ACKNOWLEDGE", [0xD8] = "ENDPOINT_REQUEST",
  [0xD9] = "ENDPOINT_RESPONSE", [0xDC] = "SACK", [0xDD] = "NACK", [0xDE] = "PROBE",
}
local REASONS = {
  [0x01] = "TRIMMED", [0x02] = "TRIMMED_LASTHOP", [0x06] = "NO_BITMAP", [0x07] = "NO_PKT_BUFFER",
  [0x0A] = "NO_RESOURCE", [0x0B] = "PSN_OOR_WINDOW", [0x19] = "UNEXP_EVENT",
}
local MARKS = { [0] = "NONE", [1] = "SKIP_ONCE", [2] = "ALWAYS_SKIP", [3] = "reserved" }
local ENDPOINT_OPS = { [0] = "PORT_STATUS_UPDATE", [1] = "EV_PROBE" }
local ICRC_STATUS = { [0] = "bad", [1] = "good", [2] = "not checked", [3] = "trimmed off" }

-- Whether packets are read as MRC-Client writes them.
local client = false

local TICKS = { [0] = "128 ns", [1] = "the sender's own" }

local fields = {
  ev = ProtoField.uint32("mrc.ev", "Entropy value", base.HEX, nil, nil, "Half in the UDP source port, half in the flow label"),
  plane_usid = ProtoField.uint16("mrc.usid", "uSID", base.HEX),
  trimmed = ProtoField.bool("mrc.trimmed", "Trimmed"),
  opcode = ProtoField.uint8("mrc.opcode", "Opcode", base.HEX, OPCODES),
  se = ProtoField.bool("mrc.se", "Solicited event", 8, nil, 0x80),
  m = ProtoField.bool("mrc.m", "Migrated", 8, nil, 0x40),
  m_first = ProtoField.bool("mrc.m", "Migrated", 8, nil, 0x80),
  se_second = ProtoField.bool("mrc.se", "Solicited event", 8, nil, 0x40),
  pad = ProtoField.uint8("mrc.pad", "Pad bytes", base.DEC, nil, 0x30),
  tver = ProtoField.uint8("mrc.tver", "Version", base.DEC, nil, 0x0F),
  pkey = ProtoField.uint16("mrc.pkey", "Partition key", base.HEX),
  variant = ProtoField.uint8("mrc.variant", "Variant", base.HEX),
  dqpn = ProtoField.uint24("mrc.dqpn", "Destination QP", base.HEX),
  a = ProtoField.bool("mrc.a", "Acknowledge request", 8, nil, 0x80),
  r = ProtoField.bool("mrc.r", "Reserved", 8, nil, 0x40),
  rtx = ProtoField.bool("mrc.rtx", "Retransmission", 8, nil, 0x20),
  ts = ProtoField.bool("mrc.ts", "Timestamp header present", 8, nil, 0x10),
  psn = ProtoField.uint24("mrc.psn", "Packet sequence number", base.DEC),
  rqmsn = ProtoField.uint16("mrc.meth.rqmsn", "RQMSN", base.DEC),
  msn = ProtoField.uint16("mrc.meth.msn", "MSN", base.DEC),
  timestamp = ProtoField.uint16("mrc.timestamp", "Transmit timestamp", base.DEC),
  tsr = ProtoField.uint8("mrc.tsr", "Timestamp resolution", base.DEC, TICKS, 0x80),
  ftype = ProtoField.uint8("mrc.ftype", "Type", base.DEC, nil, 0x0F),
  va = ProtoField.uint64("mrc.reth.va", "Virtual address", base.HEX),
  rkey = ProtoField.uint32("mrc.reth.rkey", "Remote key", base.HEX),
  length = ProtoField.uint32("mrc.reth.length", "Message length", base.DEC),
  immediate = ProtoField.uint32("mrc.immediate", "Immediate", base.HEX),
  payload = ProtoField.bytes("mrc.payload", "Payload"),
  syndrome = ProtoField.uint8("mrc.aeth.syndrome", "Syndrome", base.HEX),
  ack_msn = ProtoField.uint24("mrc.aeth.msn", "MSN", base.DEC),
  pds_type = ProtoField.uint8("mrc.pds_type", "PDS type", base.DEC, nil, 0xF0),
  mark = ProtoField.uint8("mrc.sack.m", "Path mark", base.DEC, MARKS, 0x60),
  probe_response = ProtoField.bool("mrc.sack.pr", "Answers a probe", 8, nil, 0x02),
  ack_offset = ProtoField.int16("mrc.sack.ack_psn_offset", "PSN of the cause, from the cumulative one", base.DEC),
  probe_id = ProtoField.uint16("mrc.probe_id", "Probe id", base.HEX),
  entropy = ProtoField.uint32("mrc.entropy", "Echoed entropy value", base.HEX),
  spdcid = ProtoField.uint16("mrc.spdcid", "Source PDC id", base.DEC),
  dpdcid = ProtoField.uint16("mrc.dpdcid", "Destination PDC id", base.DEC),
  cack = ProtoField.uint24("mrc.sack.cack_psn", "Cumulative PSN", base.DEC),
  cc_type = ProtoField.uint8("mrc.cc_type", "Congestion control type", base.DEC, nil, 0xF0),
  cc_flags = ProtoField.uint8("mrc.cc_flags", "Congestion control flags", base.HEX, nil, 0x0F),
  mpr = ProtoField.uint8("mrc.sack.mpr", "MPR (128 PSNs)", base.DEC),
  sack_offset = ProtoField.int16("mrc.sack.offset", "Bitmap offset", base.DEC),
  bitmap = ProtoField.uint64("mrc.sack.bitmap", "Bitmap", base.HEX),
  received = ProtoField.uint24("mrc.sack.received", "Received PSN", base.DEC),
  ooo = ProtoField.uint16("mrc.cc.ooo_count", "Out-of-order packets", base.DEC, nil, 0x7FFF),
  restore = ProtoField.bool("mrc.cc.restore_cwnd", "Restore window", 8, nil, 0x80),
  penalty = ProtoField.uint8("mrc.cc.rcv_cwnd_pen", "Receiver's penalty", base.DEC, nil, 0x7F),
  rcvd = ProtoField.uint24("mrc.cc.rcvd_bytes", "Received (256 bytes)", base.DEC),
  reason = ProtoField.uint8("mrc.nack.reason", "Reason", base.HEX, REASONS),
  vendor = ProtoField.uint8("mrc.vendor_info", "Vendor information", base.HEX),
  nack_psn = ProtoField.uint24("mrc.nack.psn", "Refused PSN", base.DEC),
  request_op = ProtoField.uint8("mrc.endpoint.op", "Operation", base.DEC, ENDPOINT_OPS, 0x03),
  response_op = ProtoField.uint8("mrc.endpoint.response_op", "Operation", base.DEC, ENDPOINT_OPS, 0x0C),
  response_op_high = ProtoField.uint8("mrc.endpoint.response_op", "Operation", base.DEC, ENDPOINT_OPS, 0x30),
  reachable = ProtoField.uint8("mrc.endpoint.reachable_port", "Reachable port", base.DEC),
  ports = ProtoField.uint32("mrc.endpoint.port_status_mask", "Reachable ports", base.HEX),
  icrc = ProtoField.uint32("mrc.icrc", "Invariant CRC", base.HEX),
  icrc_status = ProtoField.uint8("mrc.icrc.status", "ICRC status", base.DEC, ICRC_STATUS),
}
local list = {}
for _, field in pairs(fields) do
  list[#list + 1] = field
end
mrc.fields = list

local bad_icrc = ProtoExpert.new("mrc.icrc.bad", "The invariant CRC does not match", expert.group.CHECKSUM, expert.severity.ERROR)
local was_trimmed = ProtoExpert.new("mrc.trimmed.expert", "A switch trimmed this packet", expert.group.SEQUENCE, expert.severity.NOTE)
local was_refused = ProtoExpert.new("mrc.nack.expert", "The receiver refused a packet", expert.group.SEQUENCE, expert.severity.NOTE)
local was_resent = ProtoExpert.new("mrc.rtx.expert", "Retransmission", expert.group.SEQUENCE, expert.severity.NOTE)
local bad_dialect = ProtoExpert.new("mrc.dialect.bad", "The dialect preference is not valid", expert.group.UNDECODED, expert.severity.ERROR)
mrc.experts = { bad_dialect, bad_icrc, was_trimmed, was_refused, was_resent }

-- CRC-32 as Ethernet's, for the ICRC (InfiniBand annex A17), and the polynomial of MRC-Client's check.

local function table_of(polynomial)
  local found = {}
  for index = 0, 255 do
    local value = index
    for _ = 1, 8 do
      if band(value, 1) == 1 then
        value = bxor(rshift(value, 1), polynomial)
      else
        value = rshift(value, 1)
      end
    end
    found[index] = value
  end
  return found
end

local icrc_table, client_table = table_of(0xEDB88320), table_of(0x1EDC6F41)

local function crc32(state, bytes, crc_table)
  for index = 1, #bytes do
    state = bxor(crc_table[band(bxor(state, bytes:byte(index)), 0xFF)], rshift(state, 8))
  end
  return state
end

-- MRC-Client's check: `packet` is the frame's range from the BTH to the byte before the check.
local function client_check(packet)
  return bxor(crc32(0xFFFFFFFF, packet:bytes():raw(), client_table), 0xFFFFFFFF) % 4294967296
end

-- `inner` is the frame's range from the innermost IPv6 header to the byte before the ICRC.
local function icrc_of(inner)
  local raw = inner:bytes():raw()
  local covered = string.rep("\255", 8) .. "\111\255\255\255" -- version 6; traffic class and flow label masked
    .. raw:sub(5, 7) .. "\255" .. raw:sub(9, 40) -- hop limit masked
    .. raw:sub(41, 46) .. "\255\255" -- UDP checksum masked
    .. raw:sub(49, 52) .. "\255" .. raw:sub(54) -- variant byte of the BTH masked
  local value = bxor(crc32(0xFFFFFFFF, covered, icrc_table), 0xFFFFFFFF)
  return value % 4294967296
end

-- Extension headers. Each adds its fields at `at` and returns where the next begins, or nil when the bytes end.

local function room(tvb, at, size)
  return at + size <= tvb:len()
end

-- A port status mask, and the ports that it says can be reached: bit n - 1 is port n.
local function port_states(tvb, at, branch)
  local mask = tvb(at, 4)
  local item = branch:add(fields.ports, mask)
  for port = 1, 32 do
    if band(rshift(mask:uint(), port - 1), 1) == 1 then item:add(fields.reachable, mask, port):set_generated() end
  end
end

local function meth(tvb, at, tree)
  if not room(tvb, at, 4) then return nil end
  local branch = tree:add(mrc, tvb(at, 4), "METH")
  branch:add(fields.rqmsn, tvb(at, 2))
  branch:add(fields.msn, tvb(at + 2, 2))
  return at + 4
end

local function stamps(tvb, at, branch)
  branch:add(fields.timestamp, tvb(at, 2))
  branch:add(fields.tsr, tvb(at + 2, 1))
  branch:add(fields.ftype, tvb(at + 3, 1))
end

local function tseth(tvb, at, tree)
  if not room(tvb, at, 4) then return nil end
  stamps(tvb, at, tree:add(mrc, tvb(at, 4), "TSETH"))
  return at + 4
end

local function reth(tvb, at, tree)
  if not room(tvb, at, 16) then return nil end
  local branch = tree:add(mrc, tvb(at, 16), "RETH")
  branch:add(fields.va, tvb(at, 8))
  branch:add(fields.rkey, tvb(at + 8, 4))
  branch:add(fields.length, tvb(at + 12, 4))
  return at + 16
end

local function pdc_ids(tvb, at, branch)
  branch:add(fields.spdcid, tvb(at, 2))
  branch:add(fields.dpdcid, tvb(at + 2, 2))
end

local function sack(tvb, at, tree, pinfo)
  if not room(tvb, at, 28) then return nil end
  local branch = tree:add(mrc, tvb(at, 28), "SETH")
  branch:add(fields.pds_type, tvb(at, 1))
  branch:add(fields.mark, tvb(at + 1, 1))
  branch:add(fields.probe_response, tvb(at + 1, 1))
  if band(tvb(at + 1, 1):uint(), 0x02) ~= 0 then
    branch:add(fields.probe_id, tvb(at + 2, 2))
  else
    branch:add(fields.ack_offset, tvb(at + 2, 2))
  end
  branch:add(fields.entropy, tvb(at + 4, 4))
  pdc_ids(tvb, at + 8, branch)
  branch:add(fields.cack, tvb(at + 13, 3))
  branch:add(fields.cc_type, tvb(at + 16, 1))
  branch:add(fields.cc_flags, tvb(at + 16, 1))
  branch:add(fields.mpr, tvb(at + 17, 1))
  branch:add(fields.sack_offset, tvb(at + 18, 2))
  local map = branch:add(fields.bitmap, tvb(at + 20, 8))
  local cack, offset = tvb(at + 13, 3):uint(), tvb(at + 18, 2):int()
  local count, highest = 0, nil
  for index = 0, 63 do
    local byte = tvb(at + 27 - math.floor(index / 8), 1)
    if band(rshift(byte:uint(), index % 8), 1) == 1 then
      highest = (cack + offset + index) % 16777216
      map:add(fields.received, byte, highest)
      count = count + 1
    end
  end
  pinfo.cols.info:append(string.format(" cumulative %d", cack))
  if count > 0 then
    pinfo.cols.info:append(string.format(", %d above up to %d", count, highest))
  end
  local mark = MARKS[band(rshift(tvb(at + 1, 1):uint(), 5), 3)]
  if mark ~= "NONE" then
    pinfo.cols.info:append(", " .. mark .. string.format(" EV %#x", tvb(at + 4, 4):uint()))
  end
  at = at + 28
  if band(tvb(at - 12, 1):uint(), 0xF0) ~= 0 or not room(tvb, at, 8) then return at end
  branch = tree:add(mrc, tvb(at, 8), "CC_STATE")
  branch:add(fields.timestamp, tvb(at, 2))
  branch:add(fields.ooo, tvb(at + 2, 2))
  branch:add(fields.restore, tvb(at + 4, 1))
  branch:add(fields.penalty, tvb(at + 4, 1))
  branch:add(fields.rcvd, tvb(at + 5, 3))
  return at + 8
end

local function nack(tvb, at, tree, pinfo)
  if not room(tvb, at, 20) then return nil end
  local branch = tree:add(mrc, tvb(at, 20), "NETH")
  branch:add(fields.pds_type, tvb(at, 1))
  local reason = branch:add(fields.reason, tvb(at + 2, 1))
  reason:add_proto_expert_info(was_refused)
  branch:add(fields.vendor, tvb(at + 3, 1))
  branch:add(fields.entropy, tvb(at + 4, 4))
  pdc_ids(tvb, at + 8, branch)
  branch:add(fields.nack_psn, tvb(at + 13, 3))
  branch:add(fields.cc_type, tvb(at + 16, 1))
  branch:add(fields.cc_flags, tvb(at + 16, 1))
  branch:add(fields.timestamp, tvb(at + 18, 2))
  local code = tvb(at + 2, 1):uint()
  pinfo.cols.info:append(string.format(" %s PSN %d", REASONS[code] or code, tvb(at + 13, 3):uint()))
  return at + 20
end

local function probe(tvb, at, tree, pinfo)
  if not room(tvb, at, 16) then return nil end
  local branch = tree:add(mrc, tvb(at, 16), "PETH")
  branch:add(fields.vendor, tvb(at + 3, 1))
  branch:add(fields.probe_id, tvb(at + 4, 2))
  pdc_ids(tvb, at + 8, branch)
  stamps(tvb, at + 12, branch)
  pinfo.cols.info:append(string.format(" id %#x", tvb(at + 4, 2):uint()))
  return at + 16
end

local function request(tvb, at, tree, pinfo)
  if not room(tvb, at, 16) then return nil end
  local branch = tree:add(mrc, tvb(at, 16), "ERTH")
  branch:add(fields.request_op, tvb(at + 1, 1))
  branch:add(fields.vendor, tvb(at + 3, 1))
  port_states(tvb, at + 4, branch)
  stamps(tvb, at + 12, branch)
  local op = band(tvb(at + 1, 1):uint(), 3)
  pinfo.cols.info:append(string.format(" %s ports %#x", ENDPOINT_OPS[op] or op, tvb(at + 4, 4):uint()))
  return at + 16
end

local function response(tvb, at, tree, pinfo)
  if not room(tvb, at, 36) then return nil end
  local branch = tree:add(mrc, tvb(at, 36), "EETH")
  branch:add(client and fields.response_op_high or fields.response_op, tvb(at + 1, 1))
  branch:add(fields.vendor, tvb(at + 3, 1))
  port_states(tvb, at + 4, branch)
  stamps(tvb, at + 28, branch)
  local op = band(rshift(tvb(at + 1, 1):uint(), client and 4 or 2), 3)
  pinfo.cols.info:append(string.format(" %s", ENDPOINT_OPS[op] or op))
  return at + 36
end

local function acknowledge(tvb, at, tree, pinfo)
  if not room(tvb, at, 4) then return nil end
  local branch = tree:add(mrc, tvb(at, 4), "AETH")
  branch:add(fields.syndrome, tvb(at, 1))
  branch:add(fields.ack_msn, tvb(at + 1, 3))
  pinfo.cols.info:append(string.format(" MSN %d", tvb(at + 1, 3):uint()))
  return at + 4
end

local CONTROL = {
  [0xD1] = acknowledge, [0xD8] = request, [0xD9] = response, [0xDC] = sack, [0xDD] = nack, [0xDE] = probe,
}

local function write(tvb, at, tree, pinfo, opcode, has_timestamp)
  at = meth(tvb, at, tree)
  if at and has_timestamp then at = tseth(tvb, at, tree) end
  if at then at = reth(tvb, at, tree) end
  if at and (opcode == 0xC9 or opcode == 0xCB) then
    if not room(tvb, at, 4) then return nil end
    tree:add(fields.immediate, tvb(at, 4))
    at = at + 4
  end
  return at
end

-- Where things are in a frame: {ipv6 = innermost IPv6 header, bth = BTH, size = promised bytes from the BTH to the ICRC}.

local function locate(frame)
  local at, place = nil, 0
  if frame:len() >= 54 and frame(12, 2):uint() == 0x86DD then
    place = 14
  else
    return nil
  end
  local outer = nil
  local next, behind = frame(place + 6, 1):uint(), place + 40
  if next == 43 and frame:len() >= behind + 8 and frame(behind + 2, 1):uint() == 4 then -- a segment routing header
    next, behind = frame(behind, 1):uint(), behind + 8 * (1 + frame(behind + 1, 1):uint())
  end
  if next == 41 then
    if frame:len() < behind + 48 then return nil end
    outer, place = place, behind
  end
  if frame(place + 6, 1):uint() ~= 17 or frame:len() < place + 60 then return nil end
  at = place + 48
  return {
    outer = outer, ipv6 = place, udp = place + 40, bth = at,
    size = frame(place + 44, 2):uint() - 8, dport = frame(place + 42, 2):uint(),
  }
end

local function dissect(frame, where, pinfo, root)
  local opcode = frame(where.bth, 1):uint()
  pinfo.cols.protocol = "MRC"
  local present = math.min(where.size, frame:len() - where.bth)
  local trimmed = present < where.size
  local tvb = frame(where.bth, present):tvb("MRC")
  local tree = root:add(mrc, tvb(), "Multipath Reliable Connection, " .. (OPCODES[opcode] or "?"))
  local psn = tvb(9, 3):uint()
  pinfo.cols.info = string.format("%s QP %#x PSN %d", OPCODES[opcode], tvb(5, 3):uint(), psn)

  if not client and mrc.prefs.dialect ~= "default" then
    local wrong = string.format("mrc.dialect must be default or mrc-client (got %q)", mrc.prefs.dialect)
    tree:add_proto_expert_info(bad_dialect, wrong)
  end
  local sport, label = frame(where.udp, 2), band(frame(where.ipv6, 4):uint(), 0xFFFFF)
  local ev = client and label or band(label, 0xFFFF) * 65536 + sport:uint()
  tree:add(fields.ev, sport, ev):set_generated()
  if where.outer then
    for word = 2, 7 do
      local usid = frame(where.outer + 24 + 2 * word, 2)
      if usid:uint() == 0 then break end
      tree:add(fields.plane_usid, usid):set_generated()
    end
  end
  local note = tree:add(fields.trimmed, tvb(), trimmed)
  note:set_generated()
  if trimmed then
    note:add_proto_expert_info(was_trimmed)
    pinfo.cols.info:append(" [trimmed]")
  end

  local bth = tree:add(mrc, tvb(0, 12), "BTH")
  bth:add(fields.opcode, tvb(0, 1))
  bth:add(client and fields.m_first or fields.se, tvb(1, 1))
  bth:add(client and fields.se_second or fields.m, tvb(1, 1))
  bth:add(fields.pad, tvb(1, 1))
  bth:add(fields.tver, tvb(1, 1))
  bth:add(fields.pkey, tvb(2, 2))
  bth:add(fields.variant, tvb(4, 1))
  bth:add(fields.dqpn, tvb(5, 3))
  bth:add(fields.a, tvb(8, 1))
  bth:add(fields.r, tvb(8, 1))
  local rtx = bth:add(fields.rtx, tvb(8, 1))
  bth:add(fields.ts, tvb(8, 1))
  bth:add(fields.psn, tvb(9, 3))
  local flags = tvb(8, 1):uint()
  if band(flags, 0x20) ~= 0 then
    rtx:add_proto_expert_info(was_resent)
    pinfo.cols.info:append(" [again]")
  end

  local at
  if CONTROL[opcode] then
    at = CONTROL[opcode](tvb, 12, tree, pinfo)
  else
    at = write(tvb, 12, tree, pinfo, opcode, band(flags, 0x10) ~= 0)
  end
  if trimmed or present < 16 then
    tree:add(fields.icrc_status, tvb(), 3):set_generated()
    return
  end
  if at and at < present - 4 then
    tree:add(fields.payload, tvb(at, present - 4 - at))
  end
  local icrc = tvb(present - 4, 4)
  local item = client and tree:add(fields.icrc, icrc) or tree:add_le(fields.icrc, icrc)
  local status = 2
  if mrc.prefs.check_icrc then
    local right
    if client then
      right = client_check(frame(where.bth, present - 4)) == icrc:uint()
    else
      right = icrc_of(frame(where.ipv6, where.bth - where.ipv6 + present - 4)) == icrc:le_uint()
    end
    status = right and 1 or 0
    if status == 0 then item:add_proto_expert_info(bad_icrc) end
  end
  tree:add(fields.icrc_status, icrc, status):set_generated()
end

function mrc.prefs_changed()
  client = mrc.prefs.dialect == "mrc-client"
end

local function is_mrc_port(port)
  for range in tostring(mrc.prefs.udp_ports):gmatch("[^,]+") do
    local low, high = range:match("(%d+)%-?(%d*)")
    if low and port >= tonumber(low) and port <= tonumber(high ~= "" and high or low) then return true end
  end
  return false
end

-- A post-dissector sees the whole frame. That matters twice: the ICRC covers the IPv6 header, and Wireshark's UDP
-- dissector hands nothing on when a packet was trimmed to less than its UDP length.
function mrc.dissector(frame, pinfo, root)
  local where = locate(frame)
  if where == nil or not is_mrc_port(where.dport) or not OPCODES[frame(where.bth, 1):uint()] then return end
  dissect(frame, where, pinfo, root)
end

register_postdissector(mrc)

-- On the UDP ports themselves our opcodes are kept from Wireshark's RoCEv2 dissector, which would misread them.

local udp_ports = DissectorTable.get("udp.port")
local roce = udp_ports:get_dissector(4791)
local claim = Proto("mrc_udp", "MRC")

function claim.dissector(tvb, pinfo, root)
  if tvb:len() >= 12 and OPCODES[tvb(0, 1):uint()] then return tvb:len() end
  if roce then return roce:call(tvb, pinfo, root) end
  return 0
end

udp_ports:add(4791, claim)
udp_ports:add(4971, claim)
