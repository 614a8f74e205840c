// SPDX-License-Identifier: Apache-2.0

package apm

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// executing is the time in which goroutines of the group had a processor.
func (s *sums) executing() time.Duration { return s.spent[running] + s.spent[inSyscall] }

// row returns the values of a group of goroutines, without CPU time.
func (s *sums) row(name string, lane Lane) Row {
	created := int64(s.created)
	r := Row{Name: name, Lane: lane, InLoop: lane.inLoop(), Calls: &created, Samples: s.samples,
		Running: s.spent[running], Runnable: s.spent[runnable], Syscall: s.spent[inSyscall],
		BlockedSyscall: s.spent[blockedSyscall], Blocked: s.blocked, Assist: s.assist}
	r.AtOnce, r.Parallelism = atOnce(s.executed)
	return r
}

// unknownFunction is the row of CPU samples whose stack has no function with a name.
const unknownFunction = "(unknown stack)"

// setRows sets the rows of lanes, goroutines, functions and plugins.
func (p *Profile) setRows(t *tracker, allocated map[string]int64) {
	lanes := map[Lane]*sums{} // lane -> its groups together
	for key, g := range t.groups {
		if lanes[key.lane] == nil {
			lanes[key.lane] = newSums()
		}
		lanes[key.lane].add(g)
	}
	factors := p.laneFactors(lanes)
	goroutines := time.Duration(0)
	for lane, s := range lanes { // order: a sum
		if cpu := p.scaled(s.executing(), factors[lane]); cpu != nil {
			goroutines += *cpu
		}
	}
	fit := p.reconcile(goroutines, t.samples-t.noGo.samples, t.noGo.samples)
	for lane := range factors {
		factors[lane] *= fit.goroutines
	}
	for key, g := range t.groups {
		row := g.row(cmp.Or(key.start, string(UnknownLane)), key.lane)
		row.CPU = p.scaled(g.executing(), factors[key.lane])
		p.Goroutines = append(p.Goroutines, row)
	}
	Sort(p.Goroutines, ByCPU)
	if lanes[Runtime] == nil {
		lanes[Runtime] = newSums()
	}
	f := functions{stacks: t.stacks, rows: map[string]*share{}, plugins: map[string]*share{}}
	for _, lane := range laneOrder {
		s := lanes[lane]
		if s == nil {
			continue
		}
		row := s.row(string(lane), lane)
		row.CPU = p.scaled(s.executing(), factors[lane])
		if lane == Runtime {
			s.add(t.noGo)
			row.Samples = s.samples
			if row.CPU != nil {
				*row.CPU += fit.outside
			}
		}
		p.Lanes = append(p.Lanes, row)
		f.add(lane, s, row.CPU)
	}
	p.Functions = f.finish(f.rows, p.Lanes, p.CPU.Factor != nil)
	p.Plugins = f.finish(f.plugins, p.Lanes, p.CPU.Factor != nil)
	p.setCalls(t)
	p.setAllocated(allocated)
	Sort(p.Functions, ByCPU)
	Sort(p.Plugins, ByCPU)
}

// scaled returns the CPU time of an executing time; nil without CPU samples.
func (p *Profile) scaled(executing time.Duration, factor float64) *time.Duration {
	if p.CPU.Factor == nil {
		return nil
	}
	d := time.Duration(float64(executing) * factor)
	return &d
}

// priorSamples is the weight of the factor of all lanes in the factor of one: that many samples.
const priorSamples = 10

// laneFactors returns by what the executing time of each lane is multiplied. Contention affects lanes differently, so
// where there is any, the factor of a lane is that of all lanes, corrected by the ratio of its samples to those
// expected, as far as their number allows. The sum over all lanes stays the same, unless a lane reaches 1.
func (p *Profile) laneFactors(lanes map[Lane]*sums) map[Lane]float64 {
	factors := map[Lane]float64{}
	if p.CPU.Factor == nil {
		return factors
	}
	all := *p.CPU.Factor
	sum := 0.0
	for lane, s := range lanes { // order: sums
		factors[lane] = all
		if expected := all * float64(s.executing()) / float64(Period); all < 1 {
			factors[lane] *= (float64(s.samples) + priorSamples) / (expected + priorSamples)
		}
		sum += factors[lane] * float64(s.executing())
	}
	if sum > 0 {
		for lane := range factors {
			factors[lane] = min(factors[lane]*all*float64(p.CPU.Executing)/sum, 1)
		}
	}
	return factors
}

// setCalls sets the calls of functions with which goroutines begin: the number of goroutines that were started.
func (p *Profile) setCalls(t *tracker) {
	calls := map[string]int64{}    // start function -> goroutines that the trace has from their begin
	for key, g := range t.groups { // order: sums
		if g.created > 0 {
			calls[key.start] += int64(g.created)
		}
	}
	for i := range p.Functions {
		if n, known := calls[p.Functions[i].Name]; known {
			p.Functions[i].Calls = &n
		}
	}
	p.Unknown["calls"] = "samples do not count calls; known are the goroutines that were started with a function"
}

// setAllocated sets the allocated bytes. A function that is not in the allocation profile allocated less than what one
// sample of it stands for, which is not 0.
func (p *Profile) setAllocated(allocated map[string]int64) {
	for i := range p.Functions {
		if n, known := allocated[p.Functions[i].Name]; known {
			p.Functions[i].Allocated = &n
		}
	}
	if allocated != nil {
		p.Unknown["allocated"] = "no sample of an allocation, of which there is about one per 512 KiB"
	}
}

// share are the values of a function or a plugin.
type share struct {
	own, cumulative           float64 // CPU time in nanoseconds
	samples                   int
	lanes                     map[Lane]int // lane -> samples, the cumulative ones
	runnable, blockedSyscalls time.Duration
	blocked                   Blocked
}

// functions collects shares from stacks.
type functions struct {
	stacks        *stacks
	rows, plugins map[string]*share // name -> share
}

func shareOf(m map[string]*share, name string) *share {
	s := m[name]
	if s == nil {
		s = &share{lanes: map[Lane]int{}, blocked: Blocked{}}
		m[name] = s
	}
	return s
}

// add divides the CPU time of a lane among functions, in proportion to samples. A lane with CPU time and without
// samples gets a row of its own, so that the sum of the functions is that of the lanes.
func (f *functions) add(lane Lane, s *sums, cpu *time.Duration) {
	perSample := 0.0
	switch {
	case cpu == nil:
	case s.samples > 0:
		perSample = float64(*cpu) / float64(s.samples)
	case *cpu > 0:
		none := shareOf(f.rows, "(no sample: "+string(lane)+")")
		none.own, none.cumulative = float64(*cpu), float64(*cpu)
		none.lanes[lane] = 1
	}
	for id, c := range s.stacks { // order: sums
		names := f.stacks.names(id)
		if len(names) == 0 && c.samples > 0 {
			names = []string{unknownFunction}
		}
		weight := perSample * float64(c.samples)
		for i, name := range names {
			if slices.Contains(names[:i], name) {
				continue // a recursive call counts once
			}
			shareOf(f.rows, name).add(lane, c, weight, i == 0)
		}
		if plugin := pluginOf(names); plugin != "" {
			shareOf(f.plugins, plugin).add(lane, c, weight, true)
		}
	}
}

// add adds what one stack shows. own reports whether the function is the innermost one.
func (s *share) add(lane Lane, c *cell, weight float64, own bool) {
	if own {
		s.own += weight
		s.samples += c.samples
	}
	s.cumulative += weight
	s.lanes[lane] += c.samples
	s.runnable += c.runnable
	s.blockedSyscalls += c.syscall
	s.blocked.add(c.blocked)
}

// finish makes rows of shares.
func (f *functions) finish(shares map[string]*share, lanes []Row, sampled bool) []Row {
	byLane := map[Lane]Row{}
	for _, l := range lanes {
		byLane[l.Lane] = l
	}
	var rows []Row
	for name, s := range shares {
		r := Row{Name: name, Samples: s.samples, Runnable: s.runnable, BlockedSyscall: s.blockedSyscalls,
			Blocked: s.blocked}
		for lane := range s.lanes {
			r.Lanes = append(r.Lanes, lane)
		}
		slices.SortFunc(r.Lanes, func(a, b Lane) int {
			return cmp.Or(cmp.Compare(s.lanes[b], s.lanes[a]), strings.Compare(string(a), string(b)))
		})
		main := byLane[r.Lanes[0]]
		r.Lane, r.InLoop, r.AtOnce, r.Parallelism = main.Lane, main.InLoop, main.AtOnce, main.Parallelism
		if sampled {
			own, cumulative := time.Duration(s.own), time.Duration(s.cumulative)
			r.CPU, r.CumulativeCPU = &own, &cumulative
		}
		rows = append(rows, r)
	}
	return rows
}

// Sort sorts rows in a descending order; equal ones by name.
func Sort(rows []Row, by Order) {
	value := func(r *Row) time.Duration {
		d := r.CPU
		switch by {
		case ByWait:
			return r.Wait()
		case ByCumulative:
			d = cmp.Or(r.CumulativeCPU, r.CPU)
		}
		if d == nil {
			return r.Running
		}
		return *d
	}
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(value(&b), value(&a)), strings.Compare(a.Name, b.Name),
			strings.Compare(string(a.Lane), string(b.Lane)))
	})
}
