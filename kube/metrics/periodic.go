// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"time"

	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/question"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Watches gives the age of each watch.
type Watches interface {
	// WatchAges visits each watch with the time since it last brought anything; known is false for one that cannot be
	// had.
	WatchAges(visit func(watch string, age time.Duration, known bool))
}

// viewed is an engine about which questions can be asked: *engine.Engine.
type viewed interface{ View() engine.View }

// period is the least time between two passes.
const period = time.Second

// periodic are the gauges that need a pass over all watches, nodes or gangs.
type periodic struct {
	m    *Metrics
	last time.Time // pass
	// oversold are the nodes known to be oversold: node -> the round in which it was last found so.
	oversold map[string]uint64
	round    uint64
}

func newPeriodic(m *Metrics) periodic { return periodic{m: m, oversold: map[string]uint64{}} }

// due reports whether it is time for a pass, and notes that one begins.
func (p *periodic) due(now time.Time) bool {
	if now.Sub(p.last) < period {
		return false
	}
	p.last = now
	return true
}

// set makes one pass. watches may be nil.
func (p *periodic) set(of any, watches Watches, now time.Time) {
	if watches != nil {
		p.staleness(watches)
	}
	if e, can := of.(viewed); can {
		inspector := question.New(e.View())
		p.countOversold(inspector)
		p.gangs(inspector.GangCensus(), record.Time(now.UnixNano()))
	}
}

func (p *periodic) staleness(watches Watches) {
	watches.WatchAges(func(watch string, age time.Duration, known bool) {
		if !known { // what cannot be watched does not grow old
			p.m.staleness.Delete(map[string]string{"watch": watch})
			return
		}
		p.m.staleness.WithLabelValues(watch).Set(age.Seconds())
	})
}

func (p *periodic) gangs(c question.GangCensus, now record.Time) {
	longest := record.Time(0)
	if c.Part > 0 {
		longest = max(0, now-c.Since)
	}
	p.m.gangsPartNow.Set(float64(c.Part))
	p.m.gangsPartLongest.Set(seconds(longest))
	p.m.gangHeldPods.Set(float64(c.Held))
	for w, count := range c.Waiting {
		p.m.gangsWaiting.WithLabelValues(question.GangWait(w).String()).Set(float64(count))
	}
}

func (p *periodic) countOversold(inspector question.Inspector) {
	p.round++
	count := 0
	inspector.Oversold(func(node string) {
		count++
		if _, known := p.oversold[node]; !known {
			p.m.oversells.Inc()
		}
		p.oversold[node] = p.round
	})
	for node, round := range p.oversold { // order: each is judged for itself
		if round != p.round {
			delete(p.oversold, node)
		}
	}
	p.m.oversold.Set(float64(count))
}
