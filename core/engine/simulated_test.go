// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/plugins/basic"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/record"
)

// TestSimulatedScenarios runs testdata/simulated/*.txt: scenarios on a small simulated cluster that carries out
// what the engine asks for. Time starts at 1000 s. Effects are outstanding until "answer" or "run"; pods that are
// deleted by an eviction are gone when their grace period is over, during a "run" only. Decisions, binds, evictions
// and what is said about held capacity are printed. Commands besides those of TestPreemption and TestScenarios:
//
//	begin [hold=AFTER/FOR] [strict] [two] [status] [flush=SECONDS]   starts; "two" adds the profile "other", "status" prints what
//	                         is written into the status of groups; flush is the unschedulable timeout
//	grace SECONDS            the grace period of victims (0 at first); -1: they stay until pod-gone
//	api-clock SECONDS        the API server's clock is ahead by so much; behind, if below 0
//	pod … [label.claim=C]    a gate keeps the pod back until the lock C exists
//	edit NAME WORD...        changes words of a pod; -KEY removes one
//	refuse NAME, allow NAME  the API server refuses to delete the pod, or deletes it again
//	failbind NAME N          the next N binds of the pod fail
//	budget … [granted=POD]   the eviction of a pod was granted
//	budget-gone NAME         deletes a disruption budget
//	tick SECONDS             time goes on by so much, in one step
//	answer                   carries out what is outstanding
//	drop                     forgets what is outstanding
//	restart                  starts a new engine, which lists what there is
//	run SECONDS              lets everything happen that falls due, second by second
//	rest                     lists each unit that waits, and whether the engine would place it or evict pods for it if it were tried now
//
// A line "# Catches: NAME..." names faults of testdata/faults that the scenario detects. TestScenariosNameFaults
// compares these lines with the patches, and `make mutants` shows that each fault makes the scenario fail.
func TestSimulatedScenarios(t *testing.T) {
	playStories(t, "testdata/simulated/*.txt", func(t *testing.T, script []byte) []byte { return newSimulation(t).play(script) })
}

// TestSimulatedScenariosAreLive: played without the flush that hides a lost wake-up, no scenario ends with a unit
// that could start (see liveness_test.go).
func TestSimulatedScenariosAreLive(t *testing.T) {
	for name, script := range simulatedScripts(t) {
		t.Run(name, func(t *testing.T) {
			s := newSimulation(t)
			s.noFlush = true
			s.play(script)
			s.quiesce()
			if why := unlive(s.engine, neverRefused); why != "" {
				t.Error(why)
			}
		})
	}
}

// simulatedScripts are the scenarios by name.
func simulatedScripts(t *testing.T) map[string][]byte { // name -> script
	files, err := filepath.Glob("testdata/simulated/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	scripts := map[string][]byte{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		scripts[strings.TrimSuffix(filepath.Base(file), ".txt")] = raw
	}
	return scripts
}

// simulation is a scenario on a simulated cluster.
type simulation struct {
	robbing
	now         record.Time
	options     []string
	grace       record.Time // of victims; below 0 for no end
	ahead       record.Time // how far the API server's clock is ahead of the scheduler's
	refused     map[string]bool
	failures    map[string]int // pod name -> binds that fail
	words       map[string][]string
	order       []string // names of pods in the order in which they were created
	objects     []engine.ObjectSet
	outstanding []engine.Effect
	ends        []simulatedEnd
	printed     int  // lines
	noFlush     bool // units are never tried because they have waited for long
}

// simulatedEnd is a victim whose grace period ends.
type simulatedEnd struct {
	at  record.Time
	pod record.PodRef
}

func newSimulation(t *testing.T) *simulation {
	return &simulation{robbing: robbing{&story{t: t}}, refused: map[string]bool{}, failures: map[string]int{}, words: map[string][]string{}}
}

// play plays a script.
func (s *simulation) play(script []byte) []byte { return s.playBy(script, s.tell) }

// claimGate keeps pods back whose label "claim" names a lock that does not exist.
type claimGate struct{}

func (claimGate) Name() string { return "ClaimGate" }

func (claimGate) Gated(s cluster.Snapshot, p *cluster.Pod) (reason string, ok bool) {
	name := p.Spec.Labels["claim"]
	if name == "" {
		return "", true
	}
	if _, found := cluster.Find[*v1.PersistentVolume](s, "", name); !found {
		return fmt.Sprintf("claim %s not found", name), false
	}
	return "", true
}

func (claimGate) Wakes() []plugin.Wake {
	return []plugin.Wake{{Event: plugin.Event{Resource: plugin.VolumeObject, Action: plugin.All}}}
}

// fresh is an engine with the options of "begin".
func (s *simulation) fresh() *engine.Engine {
	how := preempt.Config{VictimTimeout: 300 * record.Second}
	var hold *engine.Hold
	flush := 300 * record.Second
	names := []string{"default-scheduler"}
	for _, o := range s.options {
		switch key, value, _ := strings.Cut(o, "="); key {
		case "hold":
			after, long, _ := strings.Cut(value, "/")
			hold = &engine.Hold{After: record.Time(s.number(after)) * record.Second, For: record.Time(s.number(long)) * record.Second}
		case "strict":
			how.Strict = true
		case "two":
			names = append(names, "other")
		case "flush":
			flush = record.Time(s.number(value)) * record.Second
		}
	}
	if s.noFlush {
		flush = noFlush
	}
	var profiles []engine.Profile
	for _, name := range names {
		p := locked()
		p.Name = name
		p.Gates, p.Wakers = append(p.Gates, claimGate{}), append(p.Wakers, claimGate{})
		p.Preemption = &how
		profiles = append(profiles, p)
	}
	return engine.New(engine.Config{
		Seed: 1, Profiles: profiles, Less: basic.PrioritySort{}, Hold: hold,
		InitialBackoff: record.Second, MaxBackoff: 10 * record.Second, UnschedulableTimeout: flush,
	})
}

func (s *simulation) tell(verb string, args []string) {
	switch verb {
	case "begin":
		s.options, s.now = args, 1000*record.Second
		s.engine, s.intake, s.pods = s.fresh(), readingIntake(), map[string]*v1.Pod{}
		s.feed(engine.Tick{Now: s.now})
	case "grace":
		s.grace = record.Time(s.number(args[0])) * record.Second
	case "api-clock":
		s.ahead = record.Time(s.number(args[0])) * record.Second
	case "refuse", "allow":
		s.refused[args[0]] = verb == "refuse"
	case "failbind":
		s.failures[args[0]] = int(s.number(args[1]))
	case "node":
		s.feed(engine.NodeSet{Node: s.intake.Node(s.node(args))})
		s.objects = append(s.objects, engine.ObjectSet{})
		s.words["node "+args[0]] = args
	case "node-gone":
		delete(s.words, "node "+args[0])
		s.feed(engine.NodeGone{Name: args[0]})
	case "pod":
		if s.words[args[0]] == nil {
			s.order = append(s.order, args[0])
		}
		s.words[args[0]] = slices.Clone(args)
		s.show(args[0])
	case "edit":
		s.edit(args[0], args[1:])
		s.show(args[0])
	case "pod-gone":
		s.gone(s.pods[args[0]])
	case "group":
		s.setObject(group(args))
	case "group-gone":
		key := group(args).Key.Object()
		s.forget(cluster.KindGang, key)
		s.feed(engine.ObjectGone{Kind: cluster.KindGang, Key: key})
	case "lock":
		s.setObject(&v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: args[0], ResourceVersion: "1"}})
	case "lock-gone":
		key := cluster.ObjectKey{Name: args[0]}
		s.forget(cluster.KindVolume, key)
		s.feed(engine.ObjectGone{Kind: cluster.KindVolume, Key: key})
	case "budget":
		b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: args[0]}}
		key, value, _ := strings.Cut(args[2], "=")
		b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
		b.Status.DisruptionsAllowed = int32(s.number(args[1]))
		for _, a := range args[3:] {
			if name, granted := strings.CutPrefix(a, "granted="); granted {
				b.Status.DisruptedPods = map[string]metav1.Time{name: {Time: time.Unix(1, 0)}}
			}
		}
		s.setObject(b)
	case "budget-gone":
		key := cluster.ObjectKey{Namespace: "default", Name: args[0]}
		s.forget(cluster.KindBudget, key)
		s.feed(engine.ObjectGone{Kind: cluster.KindBudget, Key: key})
	case "synced":
		s.feed(engine.Synced{})
	case "activate":
		s.feed(engine.Activate{Pods: []record.PodRef{s.ref(args)}})
	case "cycle":
		times := int64(1)
		if len(args) > 0 {
			times = s.number(args[0])
		}
		for range times {
			s.feed(engine.Cycle{})
		}
	case "tick":
		s.pass(record.Time(s.number(args[0])) * record.Second)
	case "answer":
		s.answer()
	case "drop":
		s.outstanding = nil
	case "restart":
		s.restart()
	case "run":
		s.run(int(s.number(args[0])))
	case "rest":
		s.rest()
	case "where":
		r, _ := inspect(s.engine).ExplainPod("default", args[0])
		s.print(fmt.Sprintf("%q gate %q nominated %q", r.Where, r.Gate, r.Nominated))
	default:
		s.t.Fatalf("no command %q", verb)
	}
}

func (s *simulation) print(line string) {
	s.out.WriteString("  " + line + "\n")
	s.printed++
}

// feed gives the engine an event. What it asks for is outstanding.
func (s *simulation) feed(ev engine.Event) {
	for _, f := range recordedStep(s.engine, ev) {
		s.outstanding = append(s.outstanding, f)
		switch f := f.(type) {
		case engine.GangStatus:
			if slices.Contains(s.options, "status") {
				s.print(describe(f))
			}
		case engine.Decided, engine.Evict, engine.Wasted, engine.GangHeld, engine.Trouble, engine.VictimsStuck, engine.PreemptionPaused, engine.Prepare, engine.Bind:
			s.print(describeEviction(f))
		case engine.WriteEvent:
			if f.Reason == "HoldingRoom" || f.Reason == "RoomReleased" {
				s.print(describeEviction(f))
			}
		}
	}
}

func (s *simulation) pass(d record.Time) {
	s.now += d
	s.feed(engine.Tick{Now: s.now})
}

// show gives the engine a pod as its words have it. What the API server has written into its status stays.
func (s *simulation) show(name string) {
	old := s.pods[name]
	args, gang, bound := gangWords(s.words[name])
	p := s.victim(args)
	if old != nil && old.UID == p.UID {
		if !slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "nominated=") }) {
			p.Status.NominatedNodeName = old.Status.NominatedNodeName
		}
		p.Status.Conditions = old.Status.Conditions
		if p.DeletionTimestamp == nil {
			p.DeletionTimestamp, p.DeletionGracePeriodSeconds = old.DeletionTimestamp, old.DeletionGracePeriodSeconds
		}
	}
	s.pods[name] = p
	s.feed(engine.PodSet{Pod: s.compact(p, gang, bound)})
}

// edit changes words of a pod.
func (s *simulation) edit(name string, words []string) {
	for _, w := range words {
		key, _, _ := strings.Cut(strings.TrimPrefix(w, "-"), "=")
		same := func(old string) bool { k, _, _ := strings.Cut(old, "="); return k == key }
		at := 1 + slices.IndexFunc(s.words[name][1:], same)
		switch {
		case strings.HasPrefix(w, "-"):
			s.words[name] = slices.DeleteFunc(s.words[name], same)
		case at > 0:
			s.words[name][at] = w
		default:
			s.words[name] = append(s.words[name], w)
		}
	}
}

func (s *simulation) gone(p *v1.Pod) {
	if p == nil {
		return
	}
	delete(s.pods, p.Name)
	delete(s.words, p.Name)
	s.order = slices.DeleteFunc(s.order, func(name string) bool { return name == p.Name })
	s.feed(engine.PodGone{Pod: record.PodRef{Namespace: p.Namespace, Name: p.Name, UID: string(p.UID)}})
}

func (s *simulation) setObject(obj cluster.Object) {
	s.forget(cluster.KindOf(obj), cluster.KeyOf(obj))
	s.objects = append(s.objects, engine.ObjectSet{Object: obj})
	s.feed(engine.ObjectSet{Object: obj})
}

func (s *simulation) forget(kind cluster.Kind, key cluster.ObjectKey) {
	s.objects = slices.DeleteFunc(s.objects, func(o engine.ObjectSet) bool {
		return o.Object == nil || cluster.KindOf(o.Object) == kind && cluster.KeyOf(o.Object) == key
	})
}

// restart begins with an engine that knows nothing, and lists what there is.
func (s *simulation) restart() {
	s.engine, s.outstanding = s.fresh(), nil
	s.feed(engine.Tick{Now: s.now})
	for _, o := range s.objects {
		if o.Object != nil {
			s.feed(o)
		}
	}
	for _, name := range sortedKeys(s.words) {
		if words, is := s.words[name], strings.HasPrefix(name, "node "); is {
			s.feed(engine.NodeSet{Node: s.intake.Node(s.node(words))})
		}
	}
	for _, name := range sortedKeys(s.pods) {
		s.show(name)
	}
	s.feed(engine.Synced{})
	s.outstanding = nil
}

// answer carries out what is outstanding.
func (s *simulation) answer() {
	todo := s.outstanding
	s.outstanding = nil
	for _, f := range todo {
		switch f := f.(type) {
		case engine.Bind:
			s.bind(f)
		case engine.Evict:
			s.evict(f)
		case engine.Prepare:
			s.prepare(f)
		case engine.Condition:
			if p := s.pods[f.Pod.Name]; p != nil && string(p.UID) == f.Pod.UID && p.Spec.NodeName == "" {
				s.setStatus(p, f)
			}
		}
	}
}

func (s *simulation) setStatus(p *v1.Pod, f engine.Condition) {
	if f.ClearNomination {
		p.Status.NominatedNodeName = ""
	}
	if f.Nominate != "" {
		p.Status.NominatedNodeName = f.Nominate
	}
	p.Status.Conditions = append(slices.DeleteFunc(p.Status.Conditions, isScheduled),
		v1.PodCondition{Type: v1.PodScheduled, Status: v1.ConditionFalse, Reason: f.Reason, Message: f.Message, ObservedGeneration: f.Generation})
	s.words[p.Name] = slices.DeleteFunc(s.words[p.Name], func(w string) bool { return strings.HasPrefix(w, "nominated=") })
	s.show(p.Name)
}

func (s *simulation) bind(f engine.Bind) {
	p := s.pods[f.Pod.Name]
	done := engine.BindDone{Pod: f.Pod, Node: f.Node, Outcome: engine.Bound}
	switch {
	case p == nil || string(p.UID) != f.Pod.UID:
		done.Outcome = engine.PodVanished
	case s.failures[p.Name] > 0:
		s.failures[p.Name]--
		done.Outcome, done.Message = engine.BindFailed, "refused"
	case p.Spec.NodeName != "" && p.Spec.NodeName != f.Node:
		done.Outcome, done.Node = engine.BoundElsewhere, p.Spec.NodeName
	default:
		s.edit(p.Name, []string{"on=" + f.Node, fmt.Sprintf("start=%d", s.now/record.Second)})
		if f.Gang != nil {
			s.edit(p.Name, []string{fmt.Sprintf("quorum=%d", f.Gang.Quorum)})
		}
		p.Status.Conditions = slices.DeleteFunc(p.Status.Conditions, isScheduled)
		s.show(p.Name)
	}
	s.feed(done)
}

// evict deletes the victims as the evictor does.
func (s *simulation) evict(f engine.Evict) {
	done := engine.EvictDone{For: f.For, Decision: f.Decision}
	waits := func(ref record.PodRef) bool {
		p := s.pods[ref.Name]
		return p != nil && string(p.UID) == ref.UID && p.Spec.NodeName == ""
	}
	if !f.Finish && !waits(f.For) && !slices.ContainsFunc(f.Beside, waits) {
		done.Message = "the capacity is not needed any more"
		s.feed(done)
		return
	}
	for _, ref := range f.Denominate {
		if p := s.pods[ref.Name]; p != nil && p.Status.NominatedNodeName != "" {
			p.Status.NominatedNodeName = ""
			s.show(p.Name)
		}
	}
	for _, v := range f.Victims {
		p := s.pods[v.Name]
		switch {
		case p == nil || p.DeletionTimestamp != nil:
			continue
		case s.refused[v.Name]:
			done.Message = "refused"
			continue
		}
		p.Status.Conditions = append(p.Status.Conditions, v1.PodCondition{Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: v1.PodReasonPreemptionByScheduler})
		grace := int64(max(s.grace, 0) / record.Second)
		p.DeletionTimestamp = &metav1.Time{Time: time.Unix(int64((s.now+s.ahead)/record.Second)+grace, 0)}
		p.DeletionGracePeriodSeconds = &grace
		s.show(v.Name)
		if s.grace >= 0 {
			s.ends = append(s.ends, simulatedEnd{s.now + s.grace, v})
		}
	}
	s.feed(done)
}

// prepare carries out the writes before a bind: the lock is the pod's then.
func (s *simulation) prepare(f engine.Prepare) {
	for _, w := range f.Writes {
		if b, is := w.(cluster.BindVolume); is {
			pv := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: b.Name, ResourceVersion: "2"}}
			pv.Spec.ClaimRef, pv.Status.Phase = claimRef(b.Claim.Name, string(b.Claim.UID)), v1.VolumeBound
			s.setObject(pv)
		}
	}
	s.feed(engine.WritesDone{Pod: f.Pod, Decision: f.Decision})
}

// end lets one victim go whose grace period is over. It reports whether there was one.
func (s *simulation) end() bool {
	for i, end := range s.ends {
		if end.at > s.now {
			continue
		}
		s.ends = slices.Delete(s.ends, i, i+1)
		if p := s.pods[end.pod.Name]; p != nil && string(p.UID) == end.pod.UID {
			s.gone(p)
		}
		return true
	}
	return false
}

// settle lets everything happen that needs no time.
func (s *simulation) settle() {
	for n := 0; ; n++ {
		if n > 10_000 {
			panic("it never comes to rest")
		}
		switch {
		case len(s.outstanding) > 0:
			s.answer()
		case s.end():
		case s.engine.Ready():
			s.feed(engine.Cycle{})
		default:
			return
		}
	}
}

func (s *simulation) run(seconds int) {
	s.settle()
	for range seconds {
		before := s.printed
		s.pass(record.Second)
		if s.settle(); s.printed > before {
			s.print(fmt.Sprintf("-- that was at %ds", s.now/record.Second))
		}
	}
}

// quiesce lets all timers run.
func (s *simulation) quiesce() {
	for _, wait := range []record.Time{30, 60, 300, 300, 600, 3600, 3600, 7200} {
		s.settle()
		s.pass(wait * record.Second)
	}
	s.settle()
}

// rest lists what waits: pods by themselves first, then gangs.
func (s *simulation) rest() {
	var gangs []string
	some := false
	for _, name := range s.order {
		if s.pods[name].Spec.NodeName != "" {
			continue
		}
		r, known := inspect(s.engine).ExplainPod("default", name)
		switch {
		case !known:
			s.print(fmt.Sprintf("pod %s is not known", name))
		case r.Node != "":
			continue
		case r.Gang != "":
			if !slices.Contains(gangs, r.Gang) {
				gangs = append(gangs, r.Gang)
			}
		default:
			s.print(fmt.Sprintf("pod %s: %s gate %q, nominated %q%s", name, r.Where, r.Gate, r.Nominated, answerOf(&r)))
		}
		some = true
	}
	for _, g := range gangs {
		s.restOfGang(strings.TrimPrefix(g, "default/"))
	}
	if !some {
		s.print("no unit waits")
	}
}

// answerOf is what the engine would do if a pod by itself were tried now.
func answerOf(r *record.PodReport) string {
	switch {
	case r.Fit != nil && r.Fit.Feasible > 0:
		return fmt.Sprintf(" *** FITS on %v", r.Fit.FeasibleExamples)
	case r.Preemption != nil && r.Preemption.Node != "":
		return fmt.Sprintf(" *** EVICTS %v", victimNames(r.Preemption))
	case r.Preemption != nil && r.Preemption.Message != "":
		return " (" + r.Preemption.Message + ")"
	}
	return ""
}

func victimNames(p *record.Preemption) (list []string) {
	for _, v := range p.Victims {
		list = append(list, v.Pod.Name)
	}
	return list
}

func (s *simulation) restOfGang(name string) {
	r, _ := inspect(s.engine).ExplainGang("default", name)
	line := fmt.Sprintf("gang %s: %s gate %q %s; needs %d, %d bound, %d coming, %d waiting", name, r.Where, r.Gate, r.Reason, r.Quorum, r.Bound, r.Coming, r.Waiting)
	if f := r.Fit; f != nil {
		line += fmt.Sprintf("; %s %d of %d", f.Verdict, f.Placed, f.Needed)
		switch p := r.Preemption; {
		case f.Verdict == "placed":
			line += " *** FITS"
		case p != nil && p.Node != "":
			line += fmt.Sprintf(" *** EVICTS %v", victimNames(p))
		case p != nil && p.Message != "":
			line += " (" + p.Message + ")"
		}
	}
	for _, h := range []*record.GangHold{r.Holds, r.HeldByOther} {
		if h != nil {
			line += fmt.Sprintf("; held for %s on %v", h.Gang, h.Nodes)
		}
	}
	s.print(line)
	for _, p := range r.Pods {
		if p.State == "bound" || p.State == "coming" || p.State == "terminating" {
			continue
		}
		line := fmt.Sprintf("  %s %s %s", p.Pod.Name, p.State, p.Note)
		one, _ := inspect(s.engine).ExplainPod("default", p.Pod.Name)
		switch {
		case one.Fit != nil && one.Fit.Feasible > 0:
			line += fmt.Sprintf("; alone it FITS on %v", one.Fit.FeasibleExamples)
		case one.Preemption != nil && one.Preemption.Node != "" && len(one.Preemption.Victims) > 0:
			line += fmt.Sprintf("; alone it EVICTS %v", victimNames(one.Preemption))
		}
		s.print(line)
	}
}

var catchesLine = regexp.MustCompile(`(?m)^# Catches: (.*)$`)

// TestScenariosNameFaults: each scenario names a fault that it detects, and the patch of the fault names the scenario.
func TestScenariosNameFaults(t *testing.T) {
	for name, script := range simulatedScripts(t) {
		m := catchesLine.FindSubmatch(script)
		if m == nil {
			t.Errorf("the scenario %s names no fault", name)
			continue
		}
		for _, fault := range strings.Fields(string(m[1])) {
			if !namesScenario(t, fault, name) {
				t.Errorf("no patch of a fault %s names the scenario %s", fault, name)
			}
		}
	}
}

// namesScenario reports whether the patch of a fault in some package of core names a scenario.
func namesScenario(t *testing.T, fault, scenario string) bool {
	t.Helper()
	for _, dir := range []string{"../*/", "../*/*/"} {
		paths, err := filepath.Glob(dir + "testdata/faults/" + fault + ".patch")
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			patch, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(patch), "TestSimulatedScenarios/"+scenario) {
				return true
			}
		}
	}
	return false
}
