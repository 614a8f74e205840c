// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kumiki-scheduler/kumiki/sim"
)

// DefaultUntil is when a run of a scenario without a limit ends at the latest.
const DefaultUntil = 24 * time.Hour

// maxCount bounds counts, so that a slip of a digit does not fill the memory.
const maxCount = 10_000_000

// check returns everything that is wrong in a file that could be read.
func (f *File) check() error {
	var list []error
	say := func(at position, format string, a ...any) { list = append(list, at.problem(format, a...)) }
	f.checkNodes(say)
	for _, in := range f.Inputs {
		var err error
		switch {
		case (in.CSV == nil) == (in.HeavyTail == nil):
			err = errors.New("a trace is one of csv and heavyTail")
		case in.CSV != nil:
			err = in.CSV.check()
		default:
			err = in.HeavyTail.check()
		}
		if err != nil {
			say(in.At_, "%v", err)
		}
	}
	f.checkStorage(say)
	f.checkWorkloads(say)
	names := map[string]bool{}
	for i := range f.Schedulers {
		s := &f.Schedulers[i]
		if s.Name == "" {
			s.Name = "scheduler-" + strconv.Itoa(i)
		}
		if names[s.Name] {
			say(s.At_, "two schedulers have the name %q", s.Name)
		}
		names[s.Name] = true
		if s.Copies < 0 || s.Copies > 1000 {
			say(s.At_, "copies must be from 0 to 1000, is %d", s.Copies)
		}
	}
	for _, b := range f.Budgets {
		if len(b.Labels) == 0 || (b.MinAvailable == nil) == (b.MaxUnavailable == nil) || !isName(b.Name) {
			say(b.At_, "a budget needs a name, labels, and one of minAvailable and maxUnavailable")
		}
	}
	for _, e := range f.Events {
		f.checkEvent(e, say)
	}
	if _, err := Seeds(f.Seeds); err != nil {
		list = append(list, fmt.Errorf("seeds: %w", err))
	}
	for _, text := range f.Assertions {
		if _, err := ParseAssertion(text); err != nil {
			list = append(list, fmt.Errorf("assertions: %w", err))
		}
	}
	for i, c := range f.Model.Calls {
		if c.InFlight < 1 || i > 0 && c.InFlight <= f.Model.Calls[i-1].InFlight {
			say(c.At_, "calls: inFlight must be at least 1 and ascend, is %d", c.InFlight)
		}
	}
	for i, l := range f.Model.Loads {
		if l.Sent < 1 || i > 0 && l.Sent <= f.Model.Loads[i-1].Sent {
			say(l.At_, "loads: sent must be at least 1 and ascend, is %d", l.Sent)
		}
	}
	if n := f.Model.InFlight; n != nil && *n < 0 {
		list = append(list, fmt.Errorf("model.inFlight must not be negative, is %d", *n))
	}
	return joined(list)
}

type sayer func(position, string, ...any)

func isName(name string) bool { return len(validation.IsDNS1123Subdomain(name)) == 0 }

func (f *File) checkNodes(say sayer) {
	names := map[string]bool{}
	for _, g := range f.Nodes {
		switch {
		case !isName(g.Name):
			say(g.At_, "a group of nodes needs a name of lower case letters, digits, - and .; is %q", g.Name)
		case names[g.Name]:
			say(g.At_, "two groups of nodes have the name %q", g.Name)
		}
		names[g.Name] = true
		if g.Count < 0 || g.Count > maxCount {
			say(g.At_, "count must be from 0 to %d, is %d", maxCount, g.Count)
		}
		if len(g.Capacity) == 0 {
			say(g.At_, "a group of nodes needs a capacity, such as {cpu: 8, memory: 32Gi, pods: 110}")
		}
		if g.Zones < 0 {
			say(g.At_, "zones must not be negative")
		}
	}
}

func (f *File) checkStorage(say sayer) {
	names := map[string]bool{}
	for _, c := range f.Storage {
		switch {
		case !isName(c.Name):
			say(c.At_, "a class of storage needs a name of lower case letters, digits, - and .; is %q", c.Name)
		case names[c.Name]:
			say(c.At_, "two classes of storage have the name %q", c.Name)
		case c.PerNode < 0 || c.PerNode > maxVolumes:
			say(c.At_, "perNode must be from 0 to %d, is %d", maxVolumes, c.PerNode)
		case c.PerNode > 0 && (c.Immediate || c.Topology != "" || c.Size == nil):
			say(c.At_, "volumes of nodes need a size; they are bound late, and reached from their node alone")
		case c.PerNode == 0 && (c.Size != nil || len(c.Labels) > 0):
			say(c.At_, "size and labels are for volumes of nodes (perNode)")
		}
		names[c.Name] = true
	}
}

// maxVolumes bounds the volumes of a node.
const maxVolumes = 1000

func (f *File) checkClaims(l *Workload, say sayer) {
	names := map[string]bool{}
	for _, c := range l.Claims {
		switch {
		case !isName(c.Name) || names[c.Name]:
			say(c.At_, "a claim needs a name that no other of the workload has; is %q", c.Name)
		case c.Size == nil:
			say(c.At_, "a claim needs a size, such as 10Gi")
		case !slices.ContainsFunc(f.Storage, func(s Storage) bool { return s.Name == c.Class }):
			say(c.At_, "there is no class of storage %q", c.Class)
		}
		names[c.Name] = true
	}
	if l.Parallel && l.Kind != string(sim.StatefulSet) {
		say(l.At_, "parallel is for kind statefulSet")
	}
}

var kinds = []sim.Kind{sim.Pods, sim.ReplicaSet, sim.StatefulSet, sim.Job, sim.Gang}

func (f *File) checkWorkloads(say sayer) {
	names := map[string]bool{}
	for i := range f.Workloads {
		l := &f.Workloads[i]
		if l.Kind == "" {
			l.Kind = string(sim.Pods)
		}
		if l.Size == 0 {
			l.Size = 1
		}
		switch {
		case !isName(l.Name):
			say(l.At_, "a workload needs a name of lower case letters, digits, - and .; is %q", l.Name)
		case names[l.Name]:
			say(l.At_, "two workloads have the name %q", l.Name)
		}
		names[l.Name] = true
		if !slices.Contains(kinds, sim.Kind(l.Kind)) {
			say(l.At_, "unknown kind %q; known are %v", l.Kind, kinds)
		}
		if l.Size < 0 || l.Size > maxCount {
			say(l.At_, "size must be from 1 to %d, is %d", maxCount, l.Size)
		}
		if l.Count != nil && (*l.Count < 0 || *l.Count > maxCount) {
			say(l.At_, "count must be from 0 to %d, is %d", maxCount, *l.Count)
		}
		if l.Completions != 0 && l.Kind != string(sim.Job) {
			say(l.At_, "completions are for kind job")
		}
		if l.Kind == string(sim.Job) && l.Work.IsZero() {
			say(l.At_, "a job needs work: without it, its pods never end")
		}
		if l.Retries != nil && *l.Retries < 0 {
			say(l.At_, "retries must not be negative")
		}
		f.checkClaims(l, say)
	}
}

func (f *File) checkEvent(e Event, say sayer) {
	set := 0
	for _, is := range []bool{e.FailNodes != nil, e.DrainNodes != nil, e.RemoveNodes != nil, e.TaintNodes != nil,
		e.AddNodes != nil, e.Scale != nil, e.FreezeWatch != nil, e.FailCalls != nil, e.Kill != nil} {
		if is {
			set++
		}
	}
	if set != 1 {
		say(e.At_, "an event needs exactly one action, such as failNodes; has %d", set)
	}
	if a := e.AddNodes; a != nil && !slices.ContainsFunc(f.Nodes, func(g NodeGroup) bool { return g.Name == a.Group }) {
		say(e.At_, "addNodes: there is no group of nodes %q", a.Group)
	}
	if s := e.Scale; s != nil && !slices.ContainsFunc(f.Workloads, func(l Workload) bool {
		return l.Name == s.Workload && (l.Kind == string(sim.ReplicaSet) || l.Kind == string(sim.StatefulSet))
	}) {
		say(e.At_, "scale: there is no workload %q of kind replicaSet or statefulSet", s.Workload)
	}
	for _, z := range []*Freeze{e.FreezeWatch, e.Kill} {
		if z != nil && z.Scheduler != "" &&
			!slices.ContainsFunc(f.Schedulers, func(s Scheduler) bool { return s.Name == z.Scheduler }) {
			say(e.At_, "there is no scheduler %q", z.Scheduler)
		}
	}
	if e.Kill != nil && e.Kill.Relist {
		say(e.At_, "killScheduler: relist is for freezeWatch")
	}
}

// Seeds parses a list of seeds, as "42-51" or "1,2,3". An empty text is the one seed 1.
func Seeds(text string) ([]uint64, error) {
	if text == "" {
		return []uint64{1}, nil
	}
	var out []uint64
	for _, part := range strings.Split(text, ",") {
		from, to, isRange := strings.Cut(strings.TrimSpace(part), "-")
		a, err := strconv.ParseUint(from, 10, 64)
		b := a
		if err == nil && isRange {
			b, err = strconv.ParseUint(to, 10, 64)
		}
		if err != nil || b < a || b-a > 100_000 {
			return nil, fmt.Errorf("%q is no list of seeds, such as 42-51 or 1,2,3", text)
		}
		for s := a; ; s++ {
			out = append(out, s)
			if s == b {
				break
			}
		}
	}
	return out, nil
}
