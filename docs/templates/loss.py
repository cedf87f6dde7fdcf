"""Template of a loss rule: ./lab run grey-link --world simulated --setting loss=loss.py:Mine"""

from endpoint.mrc import LossDetection, Parameter


class Mine(LossDetection):
    """A packet is lost when so many packets with later numbers have arrived, once per transmission."""

    parameters = (Parameter("later", int, 64, 1, 4096, "packets", "acknowledged packets that prove a loss"),)

    def __init__(self, base_rtt_ns, jitter_ns, values):
        super().__init__(base_rtt_ns, jitter_ns, values)
        self.later = values["later"]

    def overdue(self, flight, window_bytes):
        found, above = [], flight.acked.bit_count()
        for index in range(flight.acked.bit_length()):
            if above < self.later:
                break
            if flight.acked >> index & 1:
                above -= 1
            elif not flight.lost >> index & 1 and not flight.tries[(flight.una + index) & flight.mask]:
                found.append(index)  # copies are left to the retransmission timer
        return found
