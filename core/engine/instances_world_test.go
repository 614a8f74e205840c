// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	roles "github.com/kumiki-scheduler/kumiki/core/message"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugins/basic"
	"github.com/kumiki-scheduler/kumiki/core/replica"
	"github.com/kumiki-scheduler/kumiki/core/shard"
	"github.com/kumiki-scheduler/kumiki/record"
)

// instances is a cluster with one arbiter and planners. What one of them says to another is in a queue until it is
// delivered, in any order among queues. Binds are carried out once a planner has the log up to their decision, as
// `ack: One` has it.
type instances struct {
	t  fatal
	in *convert.Intake

	arbiter  *engine.Engine
	planners []*follower
	joined   int
	epoch    shard.Epoch
	now      record.Time
	rv       int
	rule     func(*engine.Config)

	nodes   map[string]*v1.Node
	pods    map[string]*v1.Pod // UID -> the API server's version
	sizes   map[string]int     // gang -> its pods
	watch   []engine.Event
	binds   []sentBind
	last    shard.Position
	carried shard.Position            // of the newest decision that was carried out
	texts   map[shard.Position]string // position -> what the arbiter's ledger was there
	answers []shard.Answer            // of the arbiter so far
}

// fatal is what a world needs of a test.
type fatal interface {
	Fatalf(format string, args ...any)
	Helper()
}

// follower is a planner with its streams.
type follower struct {
	name    string
	engine  *engine.Engine
	ordinal shard.Ordinal
	session shard.Session
	at      shard.Position
	down    []delivery
	up      []engine.Event
}

// delivery is a message to a planner, and the position of the log behind it.
type delivery struct {
	engine.Event
	at shard.Position
}

// sentBind is a bind that waits for a planner that has the log up to a position.
type sentBind struct {
	engine.Bind
	at shard.Position
}

// accepting is foreign code that rejects nothing.
type accepting struct{}

func (accepting) Takes(*cluster.Pod) bool { return true }
func (accepting) Filter(*cluster.Pod, []string) (map[string]place.ForeignRejection, error) {
	return nil, nil
}
func (accepting) Score(*cluster.Pod, []string) []place.ForeignScore { return nil }
func (accepting) Preempts(*cluster.Pod) bool                        { return false }
func (accepting) Preempt(
	*cluster.Pod, []place.ForeignVictims, func(string) ([]record.PodRef, bool),
) ([]place.ForeignVictims, error) {
	return nil, nil
}
func (accepting) Binder(*cluster.Pod) string { return "" }

func newInstances(t fatal, rule func(*engine.Config)) *instances {
	w := &instances{t: t, in: convert.NewIntake(), now: 1000 * record.Second, epoch: 1, nodes: map[string]*v1.Node{},
		pods: map[string]*v1.Pod{}, sizes: map[string]int{}, texts: map[shard.Position]string{}, rule: rule}
	w.arbiter = engine.New(w.config("i0"))
	w.toArbiter(engine.Tick{Now: w.now})
	w.toArbiter(engine.Synced{})
	return w
}

func (w *instances) config(name string) engine.Config {
	native, slow := engine.DefaultProfile("default-scheduler"), engine.DefaultProfile("slow")
	slow.Foreign = accepting{}
	cfg := engine.Config{
		Seed: 7, Profiles: []engine.Profile{native, slow}, Less: basic.PrioritySort{}, Hold: &engine.Hold{},
		InitialBackoff: record.Second, MaxBackoff: 10 * record.Second, UnschedulableTimeout: noFlush,
		Instances: &engine.Instances{Name: name, Epoch: 1, Policy: shard.Policy{Lend: shard.LendAlways}},
	}
	if w.rule != nil {
		w.rule(&cfg)
	}
	return cfg
}

// toArbiter feeds the arbiter and carries what it says to the streams.
func (w *instances) toArbiter(ev engine.Event) {
	w.t.Helper()
	effects := slices.Clone(w.arbiter.Step(ev))
	var binds []engine.Bind
	for _, f := range effects {
		switch f := f.(type) {
		case engine.Bind:
			binds = append(binds, f)
		case engine.Trouble:
			w.t.Fatalf("arbiter after %T: %s: %s: %s", ev, f.Object, f.What, f.Details)
		case roles.Publish:
			w.last = f.Last
			for _, p := range w.planners {
				w.send(p, roles.Entries{Frame: f.Frame})
			}
		case roles.Welcome:
			w.welcome(f)
		case roles.Lend:
			w.send(w.planner(f.To), roles.Lent{Pods: f.Pods})
		case roles.EndLoan:
			if p := w.planner(f.To); p != nil {
				w.send(p, roles.LoanOver{Pods: f.Pods})
			}
		case roles.Answers:
			w.note(f)
			w.send(w.planner(f.To), roles.Answered{List: f.List})
		}
	}
	w.checkWhole(binds)
	for _, b := range binds {
		w.binds = append(w.binds, sentBind{b, w.last})
	}
	w.texts[w.last] = ledger(w.arbiter)
}

// send puts a message to a planner into its stream.
func (w *instances) send(p *follower, ev engine.Event) { p.down = append(p.down, delivery{ev, w.last}) }

// note follows answers: a refusal has a reason.
func (w *instances) note(f roles.Answers) {
	w.answers = append(w.answers, f.List...)
	for _, ans := range f.List {
		if ans.Verdict == shard.Refused && ans.Reason == "" {
			w.t.Fatalf("refused without a reason: %+v", ans)
		}
	}
}

// checkWhole: no bind of a gang is sent unless enough of its pods have a place.
func (w *instances) checkWhole(binds []engine.Bind) {
	for _, b := range binds {
		if b.Gang == nil {
			continue
		}
		key := cluster.GangKey{Source: cluster.GangOfAnnotation, Namespace: "default", Name: b.Gang.Name}
		if live, _ := w.arbiter.Snapshot().GangCounts(key); live < w.sizes[b.Gang.Name] {
			w.t.Fatalf("a bind of gang %s of %d is sent, and %d have a place", b.Gang.Name, w.sizes[b.Gang.Name], live)
		}
	}
}

func (w *instances) planner(o shard.Ordinal) *follower {
	for _, p := range w.planners {
		if p.ordinal == o {
			return p
		}
	}
	return nil
}

// join adds a planner.
func (w *instances) join() {
	w.joined++
	w.toArbiter(roles.Joined{Name: fmt.Sprintf("i%d", w.joined), Weight: shard.DefaultWeight,
		Session: shard.Session(w.joined)})
}

func (w *instances) welcome(f roles.Welcome) {
	from, err := replica.Load(w.arbiter.LogSnapshot())
	if err != nil {
		w.t.Fatalf("loading: %v", err)
	}
	e, err := engine.Follow(w.config(f.Name), from)
	if err != nil {
		w.t.Fatalf("following: %v", err)
	}
	p := &follower{name: f.Name, engine: e, ordinal: f.To, session: f.Session, at: w.last}
	w.send(p, roles.Welcomed{Ordinal: f.To, Epoch: w.epoch, Session: f.Session})
	w.planners = append(w.planners, p)
	w.toPlanner(p, engine.Tick{Now: w.now})
}

// toPlanner feeds a planner, and takes up what it says. A planner writes nothing, and its ledger is the arbiter's but
// for its own proposals.
func (w *instances) toPlanner(p *follower, ev engine.Event) {
	w.t.Helper()
	for _, f := range slices.Clone(p.engine.Step(ev)) {
		switch f := f.(type) {
		case engine.Bind, engine.Prepare, engine.Release, engine.Evict, engine.Nominate, roles.Publish:
			w.t.Fatalf("planner %s after %T: %T", p.name, ev, f)
		case engine.Trouble:
			w.t.Fatalf("planner %s after %T: %s: %s: %s", p.name, ev, f.Object, f.What, f.Details)
		case roles.Rejoin:
			w.t.Fatalf("planner %s after %T: must rejoin: %s", p.name, ev, f.Why)
		case roles.Propose:
			p.up = append(p.up, roles.Proposed{List: []shard.Proposal{f.Proposal}})
		case roles.GiveBack:
			p.up = append(p.up, roles.GivenBack{From: p.ordinal, Session: f.Session, Unit: f.Unit})
		}
	}
	if want, known := w.texts[p.at]; known {
		if got := ledger(p.engine); got != want {
			w.t.Fatalf("planner %s at %d after %T:\n%s", p.name, p.at, ev, diff(want, got))
		}
	}
}

// ledger is what an engine's store says, without what is assumed for open proposals.
func ledger(e *engine.Engine) string {
	st := e.State()
	own := map[cluster.UID]bool{}
	for _, f := range st.Flights {
		if f.Stage == "proposed" {
			own[f.Pod.UID] = true
		}
	}
	var lines []string
	for _, row := range st.Cluster.Rows {
		node, _ := json.Marshal(row.Node)
		lines = append(lines, fmt.Sprintf("%s is %s", row.Name, node))
		for _, held := range row.Pods {
			if !own[held.Pod.UID] || !held.Assumed {
				lines = append(lines, fmt.Sprintf("%s has %s, assumed %v, version %s, gang %v", row.Name, held.Pod.UID,
					held.Assumed, held.Pod.ResourceVersion, held.Gang != nil))
			}
		}
	}
	lines = slices.DeleteFunc(lines, func(l string) bool { return strings.HasSuffix(l, " is null") })
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// crash ends a planner, which the arbiter notices.
func (w *instances) crash(p *follower) {
	w.planners = slices.DeleteFunc(w.planners, func(o *follower) bool { return o == p })
	w.toArbiter(roles.Left{Name: p.name})
}

// succeed ends the arbiter. The planner with the longest log is the next one; the others join it anew. What is
// guaranteed needs one planner that has what was carried out: without one, nothing happens.
func (w *instances) succeed() {
	next := slices.MaxFunc(w.planners, func(a, b *follower) int { return int(a.at) - int(b.at) })
	if next.at < w.carried {
		return
	}
	w.arbiter, w.planners, w.watch, w.binds = next.engine, nil, nil, nil
	w.epoch, w.carried = w.epoch+1, 0
	w.last = next.at
	clear(w.texts)
	w.toArbiter(roles.Promoted{Epoch: w.epoch})
	for _, row := range w.arbiter.State().Cluster.Rows { // it lists
		if row.Node != nil && w.nodes[row.Name] == nil {
			w.toArbiter(engine.NodeGone{Name: row.Name})
		}
		for _, held := range row.Pods {
			if w.pods[string(held.Pod.UID)] == nil {
				w.toArbiter(engine.PodGone{Pod: held.Pod.Ref()})
			}
		}
	}
	for _, p := range slices.SortedFunc(w.arbiter.View().AllPending(), cluster.CompareKeys) {
		if w.pods[string(p.UID)] == nil {
			w.toArbiter(engine.PodGone{Pod: p.Ref()})
		}
	}
	for _, name := range sortedKeys(w.nodes) {
		w.toArbiter(engine.NodeSet{Node: w.in.Node(w.nodes[name])})
	}
	for _, uid := range sortedKeys(w.pods) {
		w.toArbiter(engine.PodSet{Pod: w.compact(w.pods[uid])})
	}
}

func (w *instances) setNode(name string, cores int64) {
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	n.Status.Allocatable = v1.ResourceList{v1.ResourceCPU: *apiresource.NewQuantity(cores, apiresource.DecimalSI),
		v1.ResourcePods: apiresource.MustParse("30")}
	w.nodes[name] = n
	w.watch = append(w.watch, engine.NodeSet{Node: w.in.Node(n)})
}

// pod creates a pod of a scheduler; gang is empty for a pod by itself.
func (w *instances) pod(name, scheduler, cpu, gang string, priority int32) {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
	p.UID = types.UID(fmt.Sprintf("%s-%d", name, w.rv))
	p.Spec.SchedulerName, p.Spec.Priority = scheduler, &priority
	p.Spec.Containers = []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{
		Requests: v1.ResourceList{v1.ResourceCPU: apiresource.MustParse(cpu)}}}}
	if gang != "" {
		p.Annotations = map[string]string{gangAnnotation: gang}
	}
	w.pods[string(p.UID)] = p
	w.changed(p)
}

func (w *instances) gang(name, scheduler, cpu string, size int) {
	w.sizes[name] = size
	for i := range size {
		w.pod(fmt.Sprintf("%s-%d", name, i), scheduler, cpu, name, 0)
	}
}

func (w *instances) changed(p *v1.Pod) {
	w.rv++
	p.ResourceVersion = fmt.Sprint(w.rv)
	w.watch = append(w.watch, engine.PodSet{Pod: w.compact(p)})
}

func (w *instances) compact(p *v1.Pod) *cluster.Pod {
	c := w.in.Pod(p.DeepCopy())
	if name := p.Annotations[gangAnnotation]; name != "" {
		c.Gang = &cluster.GangMark{Size: w.sizes[name],
			Key: cluster.GangKey{Source: cluster.GangOfAnnotation, Namespace: p.Namespace, Name: name}}
	}
	return c
}

func (w *instances) remove(p *v1.Pod) {
	delete(w.pods, string(p.UID))
	ref := record.PodRef{Namespace: p.Namespace, Name: p.Name, UID: string(p.UID)}
	w.watch = append(w.watch, engine.PodGone{Pod: ref})
}

// free is how much CPU of a node no pod has, by the API server.
func (w *instances) free(node string) int64 {
	n := w.nodes[node]
	if n == nil {
		return 0
	}
	left := n.Status.Allocatable.Cpu().MilliValue()
	for _, p := range w.pods {
		if p.Spec.NodeName == node {
			left -= p.Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
		}
	}
	return left
}

// sendable reports whether a bind may be carried out.
func (w *instances) sendable(b sentBind) bool {
	return len(w.planners) == 0 || slices.ContainsFunc(w.planners, func(p *follower) bool { return p.at >= b.at })
}

// carryOut carries out a bind, or lets it fail. No node is overcommitted, and no pod is bound twice.
func (w *instances) carryOut(i int, fails bool) {
	b := w.binds[i]
	w.binds = slices.Delete(w.binds, i, i+1)
	done := engine.BindDone{Pod: b.Pod, Node: b.Node}
	switch p := w.pods[b.Pod.UID]; {
	case p == nil:
		done.Outcome = engine.PodVanished
	case p.Spec.NodeName == b.Node: // an arbiter before this one sent it too
	case p.Spec.NodeName != "":
		w.t.Fatalf("pod %s is on %s, and is bound to %s", p.Name, p.Spec.NodeName, b.Node)
	case fails:
		done.Outcome, done.Message = engine.BindFailed, "the API server is busy"
	default:
		need := p.Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
		if w.nodes[b.Node] != nil && need > w.free(b.Node) {
			w.t.Fatalf("pod %s of %d is bound to %s, which has %d", p.Name, need, b.Node, w.free(b.Node))
		}
		p.Spec.NodeName = b.Node
		w.changed(p)
		w.carried = max(w.carried, b.at)
	}
	w.toArbiter(done)
}

// tick lets time go on for all.
func (w *instances) tick(d record.Time) {
	w.now += d
	w.toArbiter(engine.Tick{Now: w.now})
	for _, p := range w.planners {
		w.toPlanner(p, engine.Tick{Now: w.now})
	}
}

// deliverUp delivers the next message of a planner, and reports whether there was one.
func (w *instances) deliverUp(p *follower) bool {
	if len(p.up) == 0 {
		return false
	}
	ev := p.up[0]
	p.up = p.up[1:]
	w.toArbiter(ev)
	return true
}

// deliverDown delivers the next message to a planner, and reports whether there was one.
func (w *instances) deliverDown(p *follower) bool {
	if len(p.down) == 0 {
		return false
	}
	next := p.down[0]
	p.down = p.down[1:]
	if _, is := next.Event.(roles.Entries); is {
		p.at = next.at
	}
	w.toPlanner(p, next.Event)
	return true
}

// see shows the arbiter the next change, and reports whether there was one.
func (w *instances) see() bool {
	if len(w.watch) == 0 {
		return false
	}
	ev := w.watch[0]
	w.watch = w.watch[1:]
	w.toArbiter(ev)
	return true
}

// quiet lets everything happen that is under way, at this time.
func (w *instances) quiet() {
	for range 100_000 {
		moved := w.see()
		for _, p := range slices.Clone(w.planners) {
			moved = w.deliverDown(p) || moved
			moved = w.deliverUp(p) || moved
			if p.engine.Ready() {
				w.toPlanner(p, engine.Cycle{})
				moved = true
			}
		}
		if w.arbiter.Ready() {
			w.toArbiter(engine.Cycle{})
			moved = true
		}
		for i := range w.binds {
			if w.sendable(w.binds[i]) {
				w.carryOut(i, false)
				moved = true
				break
			}
		}
		if !moved {
			return
		}
	}
	w.t.Fatalf("something moves again and again")
}

// rest lets everything happen, and time go on until backoffs are over.
func (w *instances) rest() {
	for range 6 {
		w.quiet()
		w.tick(11 * record.Second)
	}
	w.quiet()
}

// checkRest: each pod that waits is in one place, and none waits that a single instance would place.
func (w *instances) checkRest() {
	cfg := w.config("one")
	cfg.Instances = nil
	one := engine.New(cfg)
	for _, name := range sortedKeys(w.nodes) {
		one.Step(engine.NodeSet{Node: w.in.Node(w.nodes[name])})
	}
	for _, uid := range sortedKeys(w.pods) {
		p := w.pods[uid]
		one.Step(engine.PodSet{Pod: w.compact(p)})
		if p.Spec.NodeName == "" {
			w.checkPlace(p)
		}
	}
	one.Step(engine.Tick{Now: w.now})
	one.Step(engine.Synced{})
	for one.Ready() {
		for _, f := range one.Step(engine.Cycle{}) {
			if b, is := f.(engine.Bind); is {
				w.t.Fatalf("pod %s waits, and a single instance places it on %s", b.Pod.Name, b.Node)
			}
		}
	}
}

// checkPlace: a pod that waits is at the arbiter, or it is lent, and its planner has it.
func (w *instances) checkPlace(p *v1.Pod) {
	u, _, waits := w.arbiter.View().Queue().Lookup(cluster.UID(p.UID))
	if !waits {
		w.t.Fatalf("pod %s is lost", p.Name)
	}
	has := 0
	for _, f := range w.planners {
		if _, _, waits := f.engine.View().Queue().Lookup(cluster.UID(p.UID)); waits {
			has++
		}
	}
	lent := u.Gate == "Instances" || slices.Contains(u.MemberGates(), "Instances")
	if lent && has != 1 || !lent && has != 0 {
		w.t.Fatalf("pod %s is lent: %v, and %d planners have it", p.Name, lent, has)
	}
}

// happen makes one random thing happen.
func (w *instances) happen(t *rapid.T) {
	someone := func() *follower {
		if len(w.planners) == 0 {
			return nil
		}
		return rapid.SampledFrom(w.planners).Draw(t, "planner")
	}
	p := someone()
	draw := func(what string, of ...string) string { return rapid.SampledFrom(of).Draw(t, what) }
	number := func(what string, most int) int { return rapid.IntRange(0, most).Draw(t, what) }
	switch move := draw("move", "pod", "pod", "gang", "delete", "see", "see", "see", "cycle", "cycle", "plan", "plan",
		"plan", "down", "down", "down", "up", "up", "up", "bind", "bind", "tick", "grow", "join", "crash", "succeed",
		"batch"); move {
	case "pod":
		w.pod(fmt.Sprintf("p%d", number("name", 9)), draw("scheduler", "default-scheduler", "slow"),
			draw("cpu", "1", "1", "2", "3"), "", int32(number("priority", 1)))
	case "gang":
		if len(w.sizes) < 4 {
			w.gang(fmt.Sprintf("g%d", len(w.sizes)), draw("scheduler", "default-scheduler", "slow"),
				draw("cpu", "1", "2"), 1+number("size", 3))
		}
	case "delete":
		if keys := sortedKeys(w.pods); len(keys) > 0 {
			if pod := w.pods[rapid.SampledFrom(keys).Draw(t, "pod")]; pod.Annotations[gangAnnotation] == "" {
				w.remove(pod)
			}
		}
	case "see":
		w.see()
	case "cycle":
		w.toArbiter(engine.Cycle{})
	case "plan", "down", "up", "crash":
		if p == nil {
			return
		}
		switch move {
		case "plan":
			w.toPlanner(p, engine.Cycle{})
		case "down":
			w.deliverDown(p)
		case "up":
			w.deliverUp(p)
		case "crash":
			if rapid.IntRange(0, 3).Draw(t, "crashes") == 0 {
				w.crash(p)
			}
		}
	case "batch":
		w.batch()
	case "bind":
		for i := range w.binds {
			if w.sendable(w.binds[i]) {
				w.carryOut(i, rapid.IntRange(0, 5).Draw(t, "fails") == 0)
				return
			}
		}
	case "tick":
		w.tick(rapid.SampledFrom([]record.Time{record.Second / 10, record.Second, 5 * record.Second}).Draw(t, "time"))
	case "grow":
		name := fmt.Sprintf("n%d", rapid.IntRange(0, 3).Draw(t, "node"))
		cores := int64(2)
		if n := w.nodes[name]; n != nil {
			cores = n.Status.Allocatable.Cpu().Value() + 1
		}
		if cores <= 6 {
			w.setNode(name, cores)
		}
	case "join":
		if len(w.planners) < 3 {
			w.join()
		}
	case "succeed":
		if p != nil && rapid.IntRange(0, 3).Draw(t, "dies") == 0 {
			w.succeed()
		}
	}
}

// batch delivers the next proposals of all planners in one event.
func (w *instances) batch() {
	var all roles.Proposed
	for _, p := range w.planners {
		for len(p.up) > 0 {
			next, is := p.up[0].(roles.Proposed)
			if !is {
				break
			}
			all.List, p.up = append(all.List, next.List...), p.up[1:]
		}
	}
	w.toArbiter(all)
}
