"""Lab 8: a NIC that loses ports. The page: ./lab course page 8. Check with: ./lab check 8"""


class Telling:
    """Tells the peers of one NIC of its ports, and believes what they tell. Every NIC has such an object."""

    def __init__(self, now_ns, name, planes, rtt_ns):
        # name: "h0"; planes: [0, 1, 2], a port for each; rtt_ns: the round trip of an idle path
        self.send = []  # updates to send now: (peer, plane, number); read after every call, so empty it first
        self.wake_ns = None  # when on_time is to be called
        self.believed = {}  # peer: planes whose ports are up there; a peer that is missing has all of them
        # GAP 1: which facts have to be remembered?

    def on_ports(self, now_ns, up, peers):
        """Our ports have changed: `up` are those that are up now. An update says so by itself; you choose the rest."""
        self.send = []
        # GAP 2: whom to tell, by which ports, under which number? When to look again?

    def on_update(self, now_ns, peer, number, up):
        """A peer's update: `up` are its ports that were up when it was sent. Return True to answer it."""
        self.send = []
        # GAP 3: is it news? What do you believe now?
        return False

    def on_answer(self, now_ns, peer, number):
        """A peer has answered the update of this number."""
        self.send = []
        # GAP 4: does this answer end something?

    def on_time(self, now_ns):
        """The time in wake_ns has come."""
        self.send = []
        self.wake_ns = None
        # GAP 5: which peers have not answered yet?
