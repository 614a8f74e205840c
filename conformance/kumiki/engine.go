// SPDX-License-Identifier: Apache-2.0

package kumiki

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/kumiki-scheduler/kumiki/conformance/diff"
	"github.com/kumiki-scheduler/kumiki/conformance/gen"
	"github.com/kumiki-scheduler/kumiki/conformance/oracle"
	"github.com/kumiki-scheduler/kumiki/conformance/outcome"
	"github.com/kumiki-scheduler/kumiki/conformance/scenario"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/kube/intake"
	"github.com/kumiki-scheduler/kumiki/record"
)

// EngineRun runs kumiki's whole engine on a scenario: pods are created, placed, bound, refused
// by the API server, deleted in flight and tried again, and nodes change meanwhile. Upstream's
// framework receives every placement and repeats each decision when the engine takes it.
type EngineRun struct {
	up     *oracle.Cluster
	s      *scenario.Scenario
	eng    *engine.Engine
	intake *convert.Intake
	rand   *gen.Rand
	world  *gen.World
	now    record.Time
	nodes  []*v1.Node
	// running: the pods that were bound from the start and still run.
	running []*v1.Pod
	// pods: UID -> as the API has it; bound ones have a node.
	pods map[string]*v1.Pod
	// flying: binds without an outcome, in the order of the decisions.
	flying []engine.Bind
	// refused: UID -> writes for the pod were refused, so it may wait and fit.
	refused map[string]bool
	// relabelled counts the changes of a node's labels.
	relabelled int
	// repelled: UID of a pod whose newest attempt InterPodAffinity rejected -> relabelled at that time.
	repelled map[string]int
	// second, if not nil, receives the same events.
	second *Second
	// version is the newest resourceVersion of objects that were written.
	version int
	// Refused counts refused writes, Written those that were carried out.
	Refused, Written int
	// Decisions compared, and how often a pod was placed, did not fit, or failed.
	Decisions, Placed, Unfit, Failed int
}

// NewEngineRun loads nodes and bound pods on both sides. The pods of the asks come
// later, one by one.
func NewEngineRun(o *oracle.Oracle, s *scenario.Scenario, seed uint64, n int) (*EngineRun, error) {
	return NewEngineRunBeside(o, s, seed, n, nil)
}

// NewEngineRunBeside is NewEngineRun with a second engine, which may be nil.
func NewEngineRunBeside(o *oracle.Oracle, s *scenario.Scenario, seed uint64, n int, second *Second) (*EngineRun,
	error) {
	// The nominator of the oracle is fixed; the engine's follows its queue.
	plain := *s
	plain.Nominated = nil
	up, err := o.Cluster(&plain)
	if err != nil {
		return nil, err
	}
	cfg, err := Config(&s.Profile)
	if err == nil && second != nil {
		err = second.start(s)
	}
	if err != nil {
		up.Close()
		return nil, err
	}
	cfg.UnschedulableTimeout = 300 * record.Second
	st := &EngineRun{up: up, s: s, eng: engine.New(cfg), intake: convert.NewIntake(),
		rand:  gen.NewRand(seed, uint64(n)),
		world: gen.NewWorld(seed, n), now: record.Second * 1_800_000_000, nodes: slices.Clone(s.Nodes), running: slices.Clone(s.Bound), pods: map[string]*v1.Pod{}, refused: map[string]bool{}, repelled: map[string]int{}, version: 1_000_000, second: second}
	if second != nil {
		st.intake.KeepFull()
	}
	st.step(engine.Tick{Now: st.now})
	for _, o := range s.Objects {
		st.step(engine.ObjectSet{Object: intake.Trim(o.APIObject)})
	}
	for _, node := range s.Nodes {
		st.step(engine.NodeSet{Node: st.intake.Node(node)})
	}
	for _, p := range s.Bound {
		st.step(engine.PodSet{Pod: st.intake.Pod(p)})
	}
	st.step(engine.Synced{})
	return st, nil
}

// step steps the engines and returns the effects of the first one.
func (st *EngineRun) step(ev engine.Event) []engine.Effect {
	effects := slices.Clone(st.eng.Step(ev))
	if st.second != nil {
		st.second.step(ev, effects)
	}
	return effects
}

// Close ends upstream's side.
func (st *EngineRun) Close() { st.up.Close() }

// Play runs the scenario to its end and returns the first difference, or "".
func (st *EngineRun) Play(steps int) string {
	d := st.play(steps)
	if b := st.second; b != nil && b.difference != "" {
		return b.difference
	}
	return d
}

func (st *EngineRun) play(steps int) string {
	arriving := st.s.Asks
	for range steps {
		switch n := st.rand.Intn(100); {
		case n < 25 && len(arriving) > 0:
			st.arrive(arriving[0].Pod)
			arriving = arriving[1:]
		case n < 33:
			st.changeNode()
		case n < 50:
			if d := st.outcome(); d != "" {
				return d
			}
		case n < 53:
			st.boundByAnother()
		case n < 55:
			st.goesAway()
		case n < 60:
			st.leaves()
		case n < 70:
			st.now += record.Time(st.rand.Range(1, 12_000)) * record.Second / 1000
			st.tell(engine.Tick{Now: st.now})
		default:
			if d := st.cycle(); d != "" {
				return d
			}
		}
	}
	return st.settle()
}

// settle lets every backoff end, without the five minutes after which all pods are tried
// anyway. Then no pod may wait that fits somewhere: whatever made it fit must have woken it.
// The first time, binds succeed. Then pods leave, and no other event wakes a pod. Then the
// binds of the woken pods fail, and only these failures free capacity.
func (st *EngineRun) settle() string {
	if d := st.calm(st.confirm); d != "" {
		return d
	}
	for range len(st.running) / 2 {
		st.leaves()
	}
	if d := st.calm(st.vanish); d != "" {
		return d
	}
	return st.calm(st.confirm)
}

// calm lets time pass, ends binds, and looks for a pod that waits for nothing.
func (st *EngineRun) calm(end func()) string {
	for range 6 {
		for len(st.flying) > 0 {
			end()
		}
		st.now += 11 * record.Second
		st.tell(engine.Tick{Now: st.now})
		for st.eng.Ready() {
			if d := st.cycle(); d != "" {
				return d
			}
		}
	}
	for len(st.flying) > 0 {
		st.confirm()
	}
	for _, pod := range st.waiting() {
		want := st.up.Decide(pod)
		if pod.DeletionTimestamp == nil && !st.refused[string(pod.UID)] && !st.sleepsOn(pod) &&
			want.Gate == nil && len(want.Best) > 0 {
			return fmt.Sprintf("pod %s waits and fits on %d nodes", pod.Name, len(want.Feasible))
		}
	}
	return ""
}

// sleepsOn reports whether upstream's hints, and so ours, may leave the pod unschedulable
// although it fits: they do not follow the namespace selectors of required affinity, do not see
// that the last matching pod is gone, nor that a changed node satisfies the affinity that the
// profile requires. (Upstream's hint compares the pod's own affinity before and after the change,
// and ignores the node if it was satisfied before. Up to 1.36 each change of a taint woke such a
// pod by a registration that 1.37 does not have.) Nor do they see that a changed node is no longer
// in the topology domain of a pod whose anti-affinity rejects this one: upstream's hint for nodes
// looks at the terms of the pod that waits only. Nor do they see that a pod of another namespace has left a disk, although
// the filter counts it.
func (st *EngineRun) sleepsOn(pod *v1.Pod) bool {
	if slices.ContainsFunc(pod.Spec.Volumes, isDisk) {
		return true
	}
	if at, repelled := st.repelled[string(pod.UID)]; repelled && st.relabelled > at {
		return true
	}
	a := pod.Spec.Affinity
	return requires(st.s.Profile.NodeAffinity) || a != nil && a.PodAffinity != nil &&
		len(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0
}

// isDisk reports whether a volume is of a kind that VolumeRestrictions lets one pod at a time use.
func isDisk(v v1.Volume) bool {
	return v.GCEPersistentDisk != nil || v.AWSElasticBlockStore != nil || v.RBD != nil || v.ISCSI != nil
}

// requires reports whether a profile adds a required affinity to nodes.
func requires(args *configv1.NodeAffinityArgs) bool {
	return args != nil && args.AddedAffinity != nil &&
		args.AddedAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil
}

// vanish ends the oldest bind with its pod gone, three times out of four.
func (st *EngineRun) vanish() {
	if st.rand.Chance(25) {
		st.confirm()
		return
	}
	b := st.flying[0]
	st.flying = st.flying[1:]
	pod := st.pods[b.Pod.UID]
	delete(st.pods, b.Pod.UID)
	st.up.Unbind(gen.Bind(pod, b.Node))
	st.tell(engine.PodGone{Pod: b.Pod})
	st.tell(engine.BindDone{Pod: b.Pod, Node: b.Node, Outcome: engine.PodVanished})
}

// confirm ends the oldest bind well.
func (st *EngineRun) confirm() {
	b := st.flying[0]
	st.flying = st.flying[1:]
	bound := gen.Bind(st.pods[b.Pod.UID], b.Node)
	st.pods[b.Pod.UID] = bound
	st.tell(engine.BindDone{Pod: b.Pod, Node: b.Node, Outcome: engine.Bound})
	st.tell(engine.PodSet{Pod: st.intake.Pod(bound)})
}

// waiting lists the pods without a node and without a bind on its way, by UID.
func (st *EngineRun) waiting() []*v1.Pod {
	var out []*v1.Pod
	for uid, pod := range st.pods { // order: sorted below
		if pod.Spec.NodeName == "" && !slices.ContainsFunc(st.flying, func(b engine.Bind) bool { return b.Pod.UID == uid }) {
			out = append(out, pod)
		}
	}
	slices.SortFunc(out, func(a, b *v1.Pod) int { return strings.Compare(string(a.UID), string(b.UID)) })
	return out
}

// boundByAnother lets another scheduler bind a pod that waits here.
func (st *EngineRun) boundByAnother() {
	list := st.waiting()
	if len(list) == 0 {
		return
	}
	bound := gen.Bind(gen.Pick(st.rand, list...), gen.Pick(st.rand, st.nodes...).Name)
	st.pods[string(bound.UID)] = bound
	st.up.Bind(bound)
	st.tell(engine.PodSet{Pod: st.intake.Pod(bound)})
}

// goesAway lets a waiting pod's deletion begin, and end some other time or never.
func (st *EngineRun) goesAway() {
	list := st.waiting()
	if len(list) == 0 {
		return
	}
	pod := gen.Pick(st.rand, list...).DeepCopy()
	if pod.DeletionTimestamp != nil {
		delete(st.pods, string(pod.UID))
		st.tell(engine.PodGone{Pod: record.PodRef{Namespace: pod.Namespace, Name: pod.Name, UID: string(pod.UID)}})
		return
	}
	at := gen.Created
	pod.DeletionTimestamp = &at
	pod.ResourceVersion += "0"
	st.pods[string(pod.UID)] = pod
	st.tell(engine.PodSet{Pod: st.intake.Pod(pod)})
}

// leaves ends a pod that runs, one of those that were there first or one that came
// with an ask.
func (st *EngineRun) leaves() {
	if len(st.running) > 0 && st.rand.Chance(60) {
		i := st.rand.Intn(len(st.running))
		st.remove(st.running[i])
		st.running = slices.Delete(st.running, i, i+1)
		return
	}
	var bound []*v1.Pod
	for _, pod := range st.pods { // order: sorted below
		if pod.Spec.NodeName != "" {
			bound = append(bound, pod)
		}
	}
	if len(bound) == 0 {
		return
	}
	slices.SortFunc(bound, func(a, b *v1.Pod) int { return strings.Compare(string(a.UID), string(b.UID)) })
	pod := gen.Pick(st.rand, bound...)
	delete(st.pods, string(pod.UID))
	st.remove(pod)
}

func (st *EngineRun) remove(pod *v1.Pod) {
	st.up.Unbind(pod)
	st.tell(engine.PodGone{Pod: record.PodRef{Namespace: pod.Namespace, Name: pod.Name, UID: string(pod.UID)}})
}

func (st *EngineRun) arrive(pod *v1.Pod) {
	if diff.Excepted(st.s, pod) {
		return
	}
	p := pod.DeepCopy()
	p.Spec.NodeName, p.Status.NominatedNodeName = "", ""
	st.pods[string(p.UID)] = p
	st.tell(engine.PodSet{Pod: st.intake.Pod(p)})
}

func (st *EngineRun) changeNode() {
	i := st.rand.Intn(len(st.nodes))
	before := st.nodes[i]
	st.nodes[i] = st.world.ChangeNode(before)
	if !maps.Equal(before.Labels, st.nodes[i].Labels) {
		st.relabelled++
	}
	st.up.SetNode(st.nodes[i])
	st.tell(engine.NodeSet{Node: st.intake.Node(st.nodes[i])})
}

// outcome ends the oldest bind in one of the ways it can end.
func (st *EngineRun) outcome() string {
	if len(st.flying) == 0 {
		return ""
	}
	b := st.flying[0]
	st.flying = st.flying[1:]
	pod := st.pods[b.Pod.UID]
	bound := gen.Bind(pod, b.Node)
	done := func(o engine.BindOutcome, message string) {
		st.tell(engine.BindDone{Pod: b.Pod, Node: b.Node, Outcome: o, Message: message})
	}
	seen := func() {
		st.pods[b.Pod.UID] = bound
		st.tell(engine.PodSet{Pod: st.intake.Pod(bound)})
	}
	switch st.rand.Intn(7) {
	case 0: // the watch is faster
		seen()
		done(engine.Bound, "")
	case 1: // the API server refuses
		st.up.Unbind(bound)
		done(engine.BindFailed, "the API server said no")
	case 2: // the pod goes away in flight
		st.up.Unbind(bound)
		delete(st.pods, b.Pod.UID)
		st.tell(engine.PodGone{Pod: b.Pod})
		done(engine.PodVanished, "")
	case 3: // it goes away, and the API server's answer is an error
		st.up.Unbind(bound)
		delete(st.pods, b.Pod.UID)
		st.tell(engine.PodGone{Pod: b.Pod})
		done(engine.BindFailed, "not found")
	case 4: // another scheduler was faster
		st.up.Unbind(bound)
		other := gen.Bind(pod, gen.Pick(st.rand, st.nodes...).Name)
		st.up.Bind(other)
		st.pods[b.Pod.UID] = other
		st.tell(engine.BindDone{Pod: b.Pod, Node: other.Spec.NodeName, Outcome: engine.BoundElsewhere})
		if st.rand.Chance(60) {
			if d := st.cycle(); d != "" {
				return d
			}
		}
		st.tell(engine.PodSet{Pod: st.intake.Pod(other)})
	default:
		done(engine.Bound, "")
		seen()
	}
	return ""
}

// cycle lets the engine decide once and holds the decision against upstream.
func (st *EngineRun) cycle() string {
	effects := st.step(engine.Cycle{})
	for _, e := range effects {
		d, ok := e.(engine.Decided)
		if !ok {
			continue
		}
		if diff := st.judge(&d.Decision, effects); diff != "" {
			return fmt.Sprintf("decision %d about %s: %s", d.Decision.Number, d.Decision.Pod.Key(), diff)
		}
	}
	st.depart(effects)
	return ""
}

func (st *EngineRun) judge(d *record.Decision, effects []engine.Effect) string {
	pod := st.pods[d.Pod.UID]
	if pod == nil || pod.Spec.NodeName != "" {
		return "the pod does not wait"
	}
	if pod.DeletionTimestamp != nil {
		return "the pod is going away"
	}
	want := st.up.Decide(pod)
	st.Decisions++
	delete(st.repelled, d.Pod.UID)
	if slices.Contains(d.Plugins, "InterPodAffinity") {
		st.repelled[d.Pod.UID] = st.relabelled
	}
	switch {
	case want.Gate != nil:
		return "the pod is gated"
	case d.Feasible != len(want.Feasible):
		return fmt.Sprintf("feasible nodes: upstream %d, kumiki %d of %d: %s", len(want.Feasible), d.Feasible,
			d.Nodes, d.Message)
	case len(want.Best) > 0:
		st.Placed++
		return winner(d, want)
	case len(want.Failures) > 0:
		st.Failed++
		if !slices.Contains(want.Failures, d.Message) {
			return fmt.Sprintf("message: upstream one of %q, kumiki %q", want.Failures, d.Message)
		}
		return checkReported(effects, d, "SchedulerError", d.Message)
	case len(want.Feasible) > 0:
		st.Failed++
		return checkReported(effects, d, "SchedulerError", want.Message)
	}
	st.Unfit++
	if !slices.Equal(d.Plugins, want.Rejectors) {
		return fmt.Sprintf("rejecting plugins: upstream %v, kumiki %v", want.Rejectors, d.Plugins)
	}
	return checkReported(effects, d, "Unschedulable", want.Message)
}

// winner checks the chosen node, the count of ties and the scores in the record.
func winner(d *record.Decision, want *outcome.Outcome) string {
	if d.Winner == nil {
		return fmt.Sprintf("upstream places the pod, kumiki says %q", d.Message)
	}
	i := slices.Index(want.Names, d.Winner.Node)
	if !slices.Contains(want.Best, i) || d.Tied != len(want.Best) {
		return fmt.Sprintf("winner %s of %d, upstream's best are %v", d.Winner.Node, d.Tied, want.Best)
	}
	for _, c := range []*record.Candidate{d.Winner, d.RunnerUp} {
		if c == nil || len(want.Scores) == 0 {
			continue
		}
		k := slices.Index(want.Feasible, slices.Index(want.Names, c.Node))
		if k < 0 {
			return fmt.Sprintf("candidate %s is none of upstream's %v", c.Node, want.Feasible)
		}
		if d := parts(c, want, k); d != "" {
			return d
		}
		if c.Total != want.Total[k] {
			return fmt.Sprintf("total of %s: kumiki %d, upstream's are %v of %v", c.Node, c.Total, want.Total, want.Feasible)
		}
	}
	return ""
}

// parts checks the scores of one candidate, upstream's k-th feasible node.
func parts(c *record.Candidate, want *outcome.Outcome, k int) string {
	said := map[string]record.PluginScore{} // plugin -> its score
	for _, ps := range c.Scores {
		said[ps.Plugin] = ps
	}
	for _, w := range diff.WithoutIdle(want).Scores {
		ps := said[w.Plugin]
		if w.Plugin != ps.Plugin || w.Raw[k] != ps.Raw || w.Weighted[k] != ps.Weighted {
			return fmt.Sprintf("score on %s: kumiki %+v, upstream %s %d %d", c.Node, c.Scores, w.Plugin, w.Raw[k], w.Weighted[k])
		}
		delete(said, w.Plugin)
	}
	delete(said, "DynamicResources") // zero everywhere, as those of VolumeBinding
	delete(said, "VolumeBinding")
	if len(said) > 0 {
		return fmt.Sprintf("scores on %s that upstream does not have: %v", c.Node, said)
	}
	return ""
}

// remedied are what upstream's PostFilter of DynamicResources says, which the oracle
// does not run, behind the message.
var remedied = []string{" deallocation of ResourceClaim completed", " deletion of ResourceClaim completed", " not found"}

func unremedied(message string) string {
	for _, text := range remedied {
		if bare, is := strings.CutSuffix(message, text); is {
			return bare
		}
	}
	return message
}

// checkReported checks the condition and the events of a pod that was not placed.
func checkReported(effects []engine.Effect, d *record.Decision, reason, want string) string {
	// What PostFilter did about it, which the oracle does not run, stands at the end.
	if unremedied(d.Message) != want {
		return fmt.Sprintf("message: upstream %q, kumiki %q", want, d.Message)
	}
	message := d.Message
	condition, event := false, false
	for _, e := range effects {
		switch e := e.(type) {
		case engine.Condition:
			condition = e.Pod == d.Pod && e.Reason == reason && e.Message == message
		case engine.WriteEvent:
			event = e.Pod == d.Pod && e.Type == "Warning" && e.Reason == "FailedScheduling" && e.Action == "Scheduling" && e.Note == message
		}
	}
	if !condition || !event {
		return fmt.Sprintf("wants a condition %s and an event with %q, effects are %+v", reason, message, effects)
	}
	return ""
}
