// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"cmp"
	"slices"
	"time"

	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

// pluginCPU sums up the CPU time of plugins over cycles in which wall time is CPU time.
type pluginCPU struct {
	of map[pluginAt]*record.PluginCPU // plugin and point -> its CPU time
	// last is the cycle in which an entry was counted last: plugin and point -> number of the cycle.
	last   map[pluginAt]uint64
	cycles uint64
}

// pluginAt is a plugin at an extension point; no name stands for several plugins at once, no point for none.
type pluginAt struct {
	name string
	at   plugin.Point
}

func newPluginCPU() pluginCPU {
	return pluginCPU{of: map[pluginAt]*record.PluginCPU{}, last: map[pluginAt]uint64{}}
}

func (p *pluginCPU) add(key pluginAt, wall time.Duration, ratio float64) {
	if wall <= 0 {
		return
	}
	e := p.of[key]
	if e == nil {
		e = &record.PluginCPU{Plugin: key.name}
		if key.at != 0 {
			e.Point = key.at.String()
		}
		p.of[key] = e
	}
	e.CPU += time.Duration(ratio * float64(wall))
	if p.last[key] != p.cycles {
		p.last[key] = p.cycles
		e.Cycles++
	}
}

// split splits the CPU time of the cycle that the meter saw last. Wall times of the parts are scaled so that they add
// up to the CPU time of the Step.
func (p *pluginCPU) split(m *Meter, step measuredStep) {
	if m == nil || !step.exact || !m.pending || !m.sampled || step.wall <= 0 {
		return
	}
	p.cycles++
	ratio := float64(step.cpu) / float64(step.wall)
	var named [plugin.Points]time.Duration // point -> in its plugins
	for i := range m.ran {
		r := &m.ran[i]
		named[r.at] += r.took
		p.add(pluginAt{r.name, r.at}, r.took, ratio)
	}
	outside := step.wall
	for at := plugin.Point(1); at < plugin.Points; at++ {
		p.add(pluginAt{"", at}, m.points[at]-named[at], ratio)
		outside -= m.points[at]
	}
	p.add(pluginAt{}, outside, ratio)
}

// list returns the sums, the largest first.
func (p *pluginCPU) list() (list []record.PluginCPU) {
	for _, e := range p.of { // order: sorted below
		list = append(list, *e)
	}
	slices.SortFunc(list, func(a, b record.PluginCPU) int {
		return cmp.Or(cmp.Compare(b.CPU, a.CPU), cmp.Compare(a.Plugin, b.Plugin), cmp.Compare(a.Point, b.Point))
	})
	return list
}
