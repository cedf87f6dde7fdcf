// The run's clock as the viewer turns it: play, pause, speed, steps; at the head of a live run it follows.

const LEAD = 0.01; // of a run's length, from where a replay opens to its first fault
export const SPEEDS = [0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 20];

export class Player {
  constructor(records) {
    this.records = records;
    this.t = 0; // since each run's first phase: runs of a race share it
    this.playing = false;
    this.following = false;
    this.speed = 4; // an index into SPEEDS
    this.moved = () => {};
  }

  get length() {
    return Math.max(...this.records.map((record) => record.length));
  }

  get live() {
    return this.records.some((record) => !record.over);
  }

  // Seconds of the run that pass in a second of the viewer, at speed 1.
  get pace() {
    return this.records[0].options.pace ?? 1;
  }

  tick(ms) {
    if (this.following) {
      this.t = this.length;
      this.following = this.live; // what is over is not followed: playing begins anew
    } else if (this.playing) {
      this.t = Math.min(this.t + ms * 1e6 * SPEEDS[this.speed] * this.pace, this.length);
      if (this.t >= this.length && !this.live) this.playing = false;
      if (this.t >= this.length && this.live) this.following = true;
    }
  }

  go(t) {
    this.following = false;
    this.t = Math.max(-1, Math.min(t, this.length));
    this.moved();
  }

  // Where a replay is opened: shortly before the first fault of any run; without faults, at the beginning.
  open() {
    const faults = this.records.flatMap((record) => {
      const line = record.firstFault;
      return line ? [line.t_ns - record.start] : [];
    });
    this.t = faults.length ? Math.max(0, Math.min(...faults) - LEAD * this.length) : 0;
  }

  toggle() {
    if (!this.playing && this.t >= this.length && !this.live) this.t = 0;
    this.playing = this.following ? false : !this.playing;
    this.following = false;
    this.moved();
  }

  follow() {
    this.following = true;
    this.moved();
  }

  faster(by) {
    this.speed = Math.max(0, Math.min(SPEEDS.length - 1, this.speed + by));
    this.moved();
  }

  nudge(share) {
    this.playing = false;
    this.go(this.t + share * this.length);
  }

  // To the next (or previous) event of any run.
  step(forward) {
    this.playing = false;
    const found = this.records.map((record) => {
      const now = record.start + this.t;
      const line = forward ? record.nextEvent(now) : record.previousEvent(now);
      return line ? line.t_ns - record.start : null;
    }).filter((t) => t !== null);
    if (found.length) this.go(forward ? Math.min(...found) : Math.max(...found));
  }
}
