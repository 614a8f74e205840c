// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

// op is one step of a random history. What A, B and Set mean depends on the kind.
type op struct {
	Kind string
	Pod  int
	A, B int
	Set  int
}

const podsInHistories = 7

var (
	// kinds of steps, as often as they should come.
	kinds = []string{
		"tick", "tick", "tick", "long tick", "half minute", "add", "add", "add", "update", "update", "update",
		"delete", "pop", "pop", "pop", "pop",
		"reject", "reject", "reject", "reject", "rest", "rest", "rest", "fail", "fail", "done", "aside", "late",
		"return", "event", "event", "event", "event", "event",
		"own event", "activate", "nominate", "unnominate",
	}
	rejecters = []string{"Fit", "Affinity", "Deaf", "Permit", "Broken", "All"}
	happens   = []string{
		"Node/Add", "Node/UpdateNodeLabel", "Node/UpdateNodeTaint", "Node/UpdateNodeCondition",
		"Node/UpdateNodeAllocatable", "Node/Delete",
		"AssignedPod/Add", "AssignedPod/Delete", "AssignedPod/Update", "UnschedulablePod/Add", "*",
	}
	steps = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) op {
		return op{Kind: kinds[number(t, len(kinds))], Pod: number(t, podsInHistories), A: number(t, 40),
			B: number(t, 10), Set: number(t, 1<<len(rejecters))}
	}), 60, 160)
	configs = rapid.IntRange(0, 5)
)

// number draws evenly from 0 to n-1; rapid's own integers lean to small ones, and histories of one pod say little.
func number(t *rapid.T, n int) int {
	v := 0
	for range 10 {
		v *= 2
		if rapid.Bool().Draw(t, "bit") {
			v++
		}
	}
	return v % n
}

func wakesOf(name string, wakes ...string) PluginWakes {
	pw := PluginWakes{Plugin: name}
	for i := 0; i < len(wakes); i += 2 {
		e, err := parseEvent(wakes[i])
		if err != nil {
			panic(err)
		}
		pw.Wakes = append(pw.Wakes, plugin.Wake{Event: e, Hint: hints[wakes[i+1]], Alike: alikeHints[wakes[i+1]]})
	}
	return pw
}

func configOf(n int) Config {
	cfg := Config{
		InitialBackoff: record.Second, MaxBackoff: 10 * record.Second, UnschedulableTimeout: 60 * record.Second,
		PopFromBackoff: n != 1 && n != 2, Less: byPriority{},
		Profiles: map[string]Profile{
			"": {
				Gates: []plugin.Gate{namedGate("Gates"), namedGate("Quota"), namedGate("Open")},
				Wakes: []PluginWakes{
					wakesOf("Gates", "Pod/UpdatePodSchedulingGatesEliminated", "own"),
					wakesOf("Quota", "Pod/UpdatePodLabel", "own", "Node/UpdateNodeLabel", ""),
					wakesOf("Open", "*", ""),
					wakesOf("Fit", "Node/Add+UpdateNodeAllocatable", "fits", "Pod/Delete", "",
						"Pod/UpdatePodScaleDown", "own"),
					wakesOf("Affinity", "Node/Add+UpdateNodeLabel", "queue", "Pod/UpdatePodLabel", "skip"),
					wakesOf("Permit", "Pod/Add", "", "Node/UpdateNodeTaint", "skip", "Node/UpdateNodeLabel", "queue"),
					wakesOf("Broken", "Node/UpdateNodeCondition", "panic"),
					wakesOf("All", "Pod/Update", ""),
				},
			},
			"other": {
				Gates: []plugin.Gate{namedGate("Quota")},
				Wakes: []PluginWakes{
					wakesOf("Quota", "Node/Add", "skip"),
					wakesOf("Fit", "Node/Add", "fits"),
					wakesOf("Permit", "Node/Add", ""),
				},
			},
		},
	}
	switch n {
	case 3:
		cfg.MaxBackoff = 0
	case 4:
		cfg.InitialBackoff, cfg.MaxBackoff = 3*record.Second/2, 100*record.Second
	case 5: // without Open there are events for which no plugin registered
		p := cfg.Profiles[""]
		p.Gates = p.Gates[:2]
		p.Wakes = slices.Delete(p.Wakes, 2, 3)
		cfg.Profiles[""] = p
	}
	return cfg
}

// history plays steps on the queue and on the model side by side.
type history struct {
	q     *Queue
	m     *model
	pods  map[string]*cluster.Pod // name -> latest version, also of deleted ones
	known map[string]attributes   // name -> its attributes
	rv    int
	units map[cluster.UID]*Unit // in flight, or let go by Done
	twins map[cluster.UID]*modelPod
	seen  map[string]record.SubQueue // UID -> where the moves say that it is
}

// compare plays a history and returns the first difference.
func compare(config int, ops []op) error {
	cfg := configOf(config)
	h := &history{
		q: New(cfg), m: &model{cfg: cfg, now: epoch},
		pods: map[string]*cluster.Pod{}, known: map[string]attributes{},
		units: map[cluster.UID]*Unit{}, twins: map[cluster.UID]*modelPod{}, seen: map[string]record.SubQueue{},
	}
	h.q.Tick(epoch)
	for i, o := range ops {
		if err := h.step(o); err != nil {
			return fmt.Errorf("step %d, %+v: %w", i, o, err)
		}
	}
	// At rest nothing is kept.
	for uid := range h.units {
		h.q.Done(uid)
	}
	if n := h.q.InFlightEvents(); n != 0 {
		return fmt.Errorf("in-flight list holds %d entries at rest", n)
	}
	return nil
}

func (h *history) step(o op) error {
	if err := h.do(o); err != nil {
		return err
	}
	return h.check()
}

func (h *history) do(o op) error {
	name := fmt.Sprintf("p%d", o.Pod)
	p := h.pods[name]
	switch o.Kind {
	case "tick":
		return h.tick(record.Time(o.A*o.A) * 7 * record.Second / 1000)
	case "long tick":
		return h.tick(record.Time(o.A) * 5 * record.Second)
	case "half minute":
		return h.tick(30*record.Second - h.m.now%(30*record.Second))
	case "pop":
		return h.pop()
	case "add", "update":
		h.setPod(o, name)
		return nil
	case "event", "own event":
		h.happen(o, p)
		return nil
	}
	if p == nil {
		return nil
	}
	h.onPod(o, p)
	return nil
}

func (h *history) tick(d record.Time) error {
	to := h.m.now + d
	due, ok := h.q.NextTick()
	h.q.Tick(to)
	h.m.tick(to)
	if len(h.q.moves) > 0 && (!ok || due > to) {
		return fmt.Errorf("Tick moved %+v, NextTick said %d, %v", h.q.moves[0], due, ok)
	}
	return nil
}

func (h *history) pop() error {
	ready := h.q.Ready()
	u, ok := h.q.Pop()
	x := h.m.pop()
	if ok != ready || ok != (x != nil) || ok && u.UID() != x.pod.UID {
		return fmt.Errorf("Pop = %+v, %v (Ready %v), model has %+v", u, ok, ready, x)
	}
	if ok {
		h.units[u.UID()], h.twins[u.UID()] = u, x
	}
	return nil
}

// setPod adds or updates. A pod let go by Done is assumed somewhere, so its updates do not come here.
func (h *history) setPod(o op, name string) {
	a := h.known[name]
	if a == nil {
		a = attributes{"prio": fmt.Sprint(o.Pod % 3), "cpu": fmt.Sprint(500 * (o.A % 8))}
		if o.Pod == 5 {
			a["scheduler"] = "other"
		}
		h.known[name] = a
	}
	switch o.Set % 10 {
	case 0:
		a["labels"] = "Quota:shut"
	case 1:
		a["labels"] = "Quota:shut+Gates:shut"
	case 2:
		a["labels"] = "Open:shut"
	case 3, 4:
		a["labels"] = ""
	case 5:
		a["gates"] = "Gates"
	case 6:
		a["gates"], a["tolerations"] = "", fmt.Sprint(o.B)
	case 7:
		a["cpu"] = fmt.Sprint(500 * (o.A % 8)) // few, so that pods are alike
	case 8:
		a["nominated"] = []string{"", "n1", "n2"}[o.B%3]
	}
	uid := cluster.UID("uid-" + name)
	old := h.pods[name]
	if old != nil && h.units[uid] != nil && h.m.find(uid) == nil {
		return
	}
	h.rv++
	p := a.pod(name, h.rv)
	h.pods[name] = p
	switch {
	case old == nil:
		h.q.Add(p)
		h.m.add(p)
	case o.Kind == "add" && h.m.find(uid) == nil:
		h.q.Add(p)
		h.m.add(p)
	default:
		h.q.Update(old, p)
		h.m.update(old, p)
	}
}

func (h *history) happen(o op, p *cluster.Pod) {
	e, err := parseEvent(happens[o.A%len(happens)])
	if err != nil {
		panic(err)
	}
	ch := plugin.Change{Event: e}
	n := &cluster.Node{Name: "n"}
	n.Allocatable.MilliCPU = int64(500 * o.B)
	switch {
	case o.Kind == "own event":
		ch.Event, ch.NewPod = plugin.ForceActivate, p
	case e.Resource == plugin.NodeObject && e.Action == plugin.Delete:
		ch.OldNode = n
	case e.Resource == plugin.NodeObject:
		ch.NewNode = n
	}
	if upTo := int32(o.B % 3); o.Set%8 == 0 {
		ch.OnlyUpTo = &upTo
	}
	h.q.Happened(ch)
	h.m.happened(ch)
}

func (h *history) onPod(o op, p *cluster.Pod) {
	uid := p.UID
	flying := h.m.find(uid) != nil && h.m.find(uid).sub == record.InFlight
	u, x := h.units[uid], h.twins[uid]
	switch o.Kind {
	case "delete":
		h.q.Delete(p)
		h.m.delete(uid)
		if !flying {
			delete(h.units, uid)
		}
	case "done":
		h.q.Done(uid)
		h.m.done(uid)
	case "reject", "fail", "late":
		// A late failure is that of a unit that Done let go.
		if u == nil || flying == (o.Kind == "late") {
			return
		}
		var why Rejection
		for i, name := range rejecters {
			if o.Kind != "fail" && o.Set&(1<<i) != 0 {
				if name == "Permit" {
					why.Pending = append(why.Pending, name)
				} else {
					why.Plugins = append(why.Plugins, name)
				}
			}
		}
		why.Err = o.Kind == "fail"
		h.q.Requeue(u, why)
		h.m.fail(x, slices.Clone(why.Plugins), why.Pending)
		delete(h.units, uid)
	case "rest":
		if u == nil || !flying || !x.early || u.Early() != x.early || o.Set%(1<<len(rejecters)) == 0 {
			return
		}
		var plugins []string
		for i, name := range rejecters {
			if o.Set&(1<<i) != 0 && name != "Permit" {
				plugins = append(plugins, name)
			}
		}
		if len(plugins) == 0 {
			return
		}
		h.q.Rest(u, plugins)
		h.m.rest(x, plugins)
		delete(h.units, uid)
	case "return":
		if u == nil || flying {
			return
		}
		h.q.Return(u)
		h.m.comeBack(x)
		delete(h.units, uid)
	case "aside":
		if u == nil || !flying {
			return
		}
		h.q.SetAside(u, "it broke")
		h.m.setAside(x)
		delete(h.units, uid)
	case "activate":
		h.q.Activate([]record.PodRef{p.Ref()})
		h.m.force(uid)
	case "nominate":
		node := []string{"n1", "n2", ""}[o.B%3]
		h.q.Nominate(p, node)
		h.m.nominate(p, node)
	case "unnominate":
		h.q.Unnominate(uid)
		h.m.unnominate(uid)
	}
}

// check compares all that can be seen.
func (h *history) check() error {
	for _, mv := range h.q.TakeMoves() {
		if was, ok := h.seen[mv.Pod.UID]; mv.From == mv.To || ok && was != mv.From || !ok && mv.From != record.Gone {
			return fmt.Errorf("move %+v of a pod that is in %q", mv, was)
		}
		h.seen[mv.Pod.UID] = mv.To
	}
	total := 0
	for sub, first := range map[record.SubQueue]func(x, y *modelPod) bool{
		record.Active: h.m.first, record.Backoff: h.m.firstInBackoff, record.Unschedulable: byArrival,
		record.Gated:    byArrival,
		record.InFlight: func(x, y *modelPod) bool { return true },
	} {
		want := h.m.in(sub, first)
		i := 0
		var err error
		h.q.Each(sub, func(u *Unit) {
			if err == nil && (i >= len(want) || want[i].pod.UID != u.UID()) {
				err = fmt.Errorf("number %d in %s is %s, model has %d there", i, sub, u.Key, len(want))
			}
			if err == nil {
				err = h.same(u, want[i])
			}
			i++
		})
		if err == nil && (i != len(want) || h.q.Counts()[sub] != i) {
			err = fmt.Errorf("%s holds %d, counts %d, model %d", sub, i, h.q.Counts()[sub], len(want))
		}
		if err != nil {
			return err
		}
		total += i
	}
	if total != len(h.q.units) {
		return fmt.Errorf("%d units in sub-queues, %d known", total, len(h.q.units))
	}
	if got, want := h.q.InFlightEvents(), h.m.inFlightEntries(); got != want {
		return fmt.Errorf("in-flight list of %d, model %d", got, want)
	}
	if next, ok := h.q.NextTick(); ok && next <= h.m.now {
		return fmt.Errorf("NextTick %d is not after now, %d", next, h.m.now)
	}
	if err := h.q.checkInvariants(); err != nil {
		return err
	}
	return h.checkNominations()
}

func (h *history) same(u *Unit, x *modelPod) error {
	found, sub, ok := h.q.Lookup(u.UID())
	if !ok || found != u || sub != x.sub || h.seen[string(u.UID())] != sub {
		return fmt.Errorf("Lookup of %s: %v in %s; moves say %s, model %s", u.Key, ok, sub, h.seen[string(u.UID())],
			x.sub)
	}
	type facts struct {
		attempts, rejected, errors int
		since                      record.Time
		gate                       string
		aside                      bool
		version                    string
	}
	got := facts{u.Attempts, u.UnschedulableCount, u.ErrorCount, u.Since, u.Gate, u.Aside != "",
		u.latest(u.UID()).ResourceVersion}
	want := facts{x.attempts, x.rejected, x.errors, x.since, x.gate, x.aside, x.pod.ResourceVersion}
	if x.sub == record.InFlight {
		got.gate, want.gate = "", ""
	}
	if got != want {
		return fmt.Errorf("%s in %s: %+v, model %+v", u.Key, sub, got, want)
	}
	if sub == record.Backoff && u.BackoffUntil != h.m.backoffEnd(x) {
		return fmt.Errorf("%s backs off until %d, model %d", u.Key, u.BackoffUntil, h.m.backoffEnd(x))
	}
	return nil
}

func (h *history) checkNominations() error {
	var nodes []string
	for _, node := range []string{"n1", "n2"} {
		var want, got []cluster.UID
		for _, n := range h.m.wanted {
			if n.node == node {
				want = append(want, n.uid)
			}
		}
		for _, p := range h.q.NominatedOn(node) {
			got = append(got, p.UID)
			if p != h.pods[p.Name] && h.m.find(p.UID) != nil {
				return fmt.Errorf("%s nominated on %s in version %s, latest is %s", p.Name, node, p.ResourceVersion,
					h.pods[p.Name].ResourceVersion)
			}
		}
		if !slices.Equal(want, got) {
			return fmt.Errorf("nominated on %s: %v, model %v", node, got, want)
		}
		if len(want) > 0 {
			nodes = append(nodes, node)
		}
	}
	if !slices.Equal(nodes, h.q.NominatedNodes()) {
		return fmt.Errorf("nodes with nominations %v, model %v", h.q.NominatedNodes(), nodes)
	}
	return nil
}

// shorten leaves out steps as long as the rest still fails.
func shorten(ops []op, fails func([]op) bool) []op {
	for i := len(ops) - 1; i >= 0; i-- {
		if fewer := slices.Delete(slices.Clone(ops), i, i+1); fails(fewer) {
			ops = fewer
		}
	}
	return ops
}

// Each pod is always in the same state as in the model, in the same order, with the same counts; it is in one
// structure only; and nothing stays in the in-flight list when no unit is in flight.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		config, ops := configs.Draw(t, "config"), steps.Draw(t, "steps")
		if err := compare(config, ops); err != nil {
			ops = shorten(ops, func(ops []op) bool { return compare(config, ops) != nil })
			t.Fatalf("%v\nshortest history, config %d: %+v\n%v", err, config, ops, compare(config, ops))
		}
	})
}
