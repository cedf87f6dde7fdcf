parser P(packet_in packet) {
    state start {
        transition accept;
        packet.advance(8);
    }
    state in { transition accept; }
}
