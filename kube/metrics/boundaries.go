// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"time"

	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

// boundaries measures the CPU time of plugins in a cycle by the clock of the thread, which it reads at each boundary
// between two plugins. Unlike wall times these are CPU times also in a cycle in which the thread had no CPU for a
// while. It is on while a recording asks for it, because a reading takes about as long as a short call of a plugin.
type boundaries struct {
	clock func() time.Duration // CPU time of the thread
	cost  time.Duration        // what a reading adds to the CPU time before the next one
	on    bool                 // the present Step is measured
	at    pluginAt             // what runs since the last reading
	last  time.Duration        // CPU time at the last reading
	spent []spent              // of the present Step
	reads int                  // of the present Step
	total record.ExactCPU
}

// spent is CPU time between two boundaries.
type spent struct {
	at  pluginAt
	cpu time.Duration
}

// begin begins a Step at a reading of the clock.
func (b *boundaries) begin(now time.Duration) {
	b.on, b.at, b.last, b.spent, b.reads = true, pluginAt{}, now, b.spent[:0], 0
}

// cross ends what ran and begins something else.
func (b *boundaries) cross(to pluginAt) {
	if to == b.at {
		return
	}
	now := b.clock()
	b.add(now)
	b.reads++
	b.at, b.last = to, now
}

// add adds the CPU time since the last reading to what ran.
func (b *boundaries) add(now time.Duration) {
	took := max(now-b.last-b.cost, 0)
	for i := range b.spent {
		if b.spent[i].at == b.at {
			b.spent[i].cpu += took
			return
		}
	}
	b.spent = append(b.spent, spent{b.at, took})
}

// end ends the Step at a reading of the clock, and returns the CPU time of all readings within it.
func (b *boundaries) end(now time.Duration, cycle bool) time.Duration {
	b.add(now)
	cost := time.Duration(b.reads) * b.cost
	if cycle {
		b.total.Cycles++
	}
	b.total.Readings += uint64(b.reads)
	b.total.CPU += cost
	return cost
}

// cross notes in an exactly measured Step that a plugin begins at a point; none and 0 for what belongs to no plugin.
func (m *Meter) cross(at plugin.Point, name string) {
	if m.boundaries != nil {
		m.boundaries.cross(pluginAt{name, at})
	}
}

// take adds the CPU times of a cycle that was measured at the boundaries of plugins.
func (p *pluginCPU) take(all []spent) {
	p.cycles++
	for _, s := range all {
		p.add(s.at, s.cpu, 1)
	}
}
