// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/plugins/basic"
	"github.com/kumiki-scheduler/kumiki/record"
)

var rewrite = flag.Bool("rewrite", false, "write the effects found into the scenario files; read the diff before you keep it")

// TestScenarios runs testdata/*.txt. A file is a story: prose after #, commands, and the effects of each command
// indented under it. Commands:
//
//	node NAME [cpu=4] [memory=8Gi] [pods=10] [taint=KEY=VALUE:EFFECT] [label.KEY=VALUE] [unschedulable] [R=AMOUNT]
//	node-gone NAME
//	pod NAME [cpu=1] [memory=1Gi] [on=NODE] [priority=5] [port=80] [gate=G] [select.KEY=VALUE] [label.KEY=VALUE] [nominated=NODE]
//	         [uid=U] [terminating] [init.cpu=2] [version=N] [generation=N] [other-scheduler] [namespace=NS] [annotation.KEY=VALUE]
//	pod-gone NAME [uid=U] [namespace=NS]
//	tick SECONDS        synced        cycle [TIMES]        activate NAME
//	lock NAME [phase=Bound] [for=POD] [version=N]   a PersistentVolume, see lock_test.go; pods take it by label.lock or label.latch
//	lock-gone NAME
//	group NAME [min=N] [basic] [priority=N] [bad=TEXT] [scheduled] [rack] [timeout=S] [source=podgroup|sigs|volcano] [deleting]   declares a gang
//	group-gone NAME
//	         pods say gang=NAME [size=N] [all=N] [timeout=S] [source=annotation] [owned], and bound ones what they were bound as: [quorum=N]
//	writes-done NAME DECISION [uid=U] [message]
//	bind-done NAME bound|failed|elsewhere|vanished|recalled [on=NODE] [uid=U] [message]
//	unheld              starts anew, with a configuration in which capacity is held for no gang
//	queue               prints counts
//	where POD           prints where a pod is
//	why GANG            prints how a gang stands
//	account NODE        prints the node's accounts
func TestScenarios(t *testing.T) {
	playStories(t, "testdata/*.txt", func(t *testing.T, script []byte) []byte { return newStory(t).play(script) })
}

// playStories plays the stories of files and demands that each goes as it is written.
func playStories(t *testing.T, pattern string, play func(t *testing.T, script []byte) []byte) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories %s: %v", pattern, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, raw)
			if *rewrite {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if !bytes.Equal(got, raw) {
				t.Errorf("the story went another way:\n%s", diff(string(raw), string(got)))
			}
		})
	}
}

// diff shows the first lines that differ, with what led to them.
func diff(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(w), len(g)) {
		if i >= len(w) || i >= len(g) || w[i] != g[i] {
			lo := max(0, i-6)
			return fmt.Sprintf("line %d\n--- written\n%s\n--- happened\n%s", i+1,
				strings.Join(w[min(lo, len(w)):min(i+3, len(w))], "\n"), strings.Join(g[min(lo, len(g)):min(i+3, len(g))], "\n"))
		}
	}
	return ""
}

type story struct {
	t      *testing.T
	engine *engine.Engine
	intake *convert.Intake
	pods   map[string]*v1.Pod // name -> newest version
	out    bytes.Buffer
	// scaleUp is that of the next engine.
	scaleUp engine.ScaleUp
}

func newStory(t *testing.T) *story {
	s := &story{t: t}
	s.begin(nil)
	return s
}

// begin starts anew, with times of holds if they are given.
func (s *story) begin(hold *engine.Hold) {
	s.engine = engine.New(engine.Config{
		Seed: 1, Profiles: []engine.Profile{locked()}, Less: basic.PrioritySort{}, Hold: hold, ScaleUp: s.scaleUp,
		InitialBackoff: record.Second, MaxBackoff: 10 * record.Second, UnschedulableTimeout: 300 * record.Second,
	})
	s.intake, s.pods = readingIntake(), map[string]*v1.Pod{}
}

// beginLimited begins anew with a limit of the time for which blocked gangs request nodes: scaleup=FOR/PAUSE.
func (s *story) beginLimited(args []string) {
	value, found := strings.CutPrefix(args[0], "scaleup=")
	if !found {
		s.t.Fatalf("begin %s: unknown", args[0])
	}
	long, pause, _ := strings.Cut(value, "/")
	s.scaleUp.For = record.Time(s.number(long)) * record.Second
	s.scaleUp.Pause = record.Time(s.number(pause)) * record.Second
	s.begin(nil)
}

// readingIntake reads the annotations that declare gangs.
func readingIntake() *convert.Intake {
	in := convert.NewIntake()
	in.DeclareGangs(convert.GangRules{Annotation: true, Evictable: true})
	return in
}

// compact is a pod as the engine is shown it. What the story says of its gang in its own words goes before annotations.
func (s *story) compact(p *v1.Pod, gang *cluster.GangMark, bound *cluster.BoundMark) *cluster.Pod {
	c := s.intake.Pod(p)
	if gang != nil || bound != nil {
		c.Gang, c.Bound = gang, bound
	}
	return c
}

func (s *story) play(script []byte) []byte { return s.playBy(script, s.command) }

// playBy plays a story in which tell does what a line says: its first word, and the others. It returns the story as
// it went.
func (s *story) playBy(script []byte, tell func(verb string, args []string)) []byte {
	for sc := bufio.NewScanner(bytes.NewReader(script)); sc.Scan(); {
		text := sc.Text()
		if strings.HasPrefix(text, "  ") {
			continue // what happened when it was written
		}
		s.out.WriteString(text + "\n")
		if fields := strings.Fields(text); len(fields) > 0 && fields[0] != "#" {
			tell(fields[0], fields[1:])
		}
	}
	return s.out.Bytes()
}

func (s *story) command(verb string, args []string) {
	switch verb {
	case "begin":
		s.beginLimited(args)
	case "node":
		s.step(engine.NodeSet{Node: s.intake.Node(s.node(args))})
	case "node-gone":
		s.step(engine.NodeGone{Name: args[0]})
	case "pod":
		args, gang, bound := gangWords(args)
		p := s.pod(args)
		s.pods[p.Name] = p
		s.step(engine.PodSet{Pod: s.compact(p, gang, bound)})
	case "group":
		s.step(engine.ObjectSet{Object: group(args)})
	case "group-gone":
		g := group(args)
		s.step(engine.ObjectGone{Kind: cluster.KindGang, Key: g.Key.Object()})
	case "pod-gone":
		s.step(engine.PodGone{Pod: s.ref(args)})
	case "tick":
		s.step(engine.Tick{Now: record.Time(s.number(args[0])) * record.Second})
	case "synced":
		s.step(engine.Synced{})
	case "cycle":
		times := 1
		if len(args) > 0 {
			times = int(s.number(args[0]))
		}
		for range times {
			s.step(engine.Cycle{})
		}
	case "activate":
		s.step(engine.Activate{Pods: []record.PodRef{s.ref(args)}})
	case "lock":
		pv := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: args[0], ResourceVersion: "1"}}
		for _, a := range args[1:] {
			switch key, value, _ := strings.Cut(a, "="); key {
			case "phase":
				pv.Status.Phase = v1.PersistentVolumePhase(value)
			case "for":
				pv.Spec.ClaimRef = claimRef(value, value)
			case "version":
				pv.ResourceVersion = value
			}
		}
		s.step(engine.ObjectSet{Object: pv})
	case "lock-gone":
		s.step(engine.ObjectGone{Kind: cluster.KindVolume, Key: cluster.ObjectKey{Name: args[0]}})
	case "writes-done":
		s.step(engine.WritesDone{Pod: s.ref(args), Decision: uint64(s.number(args[1])), Message: message(args[2:])})
	case "bind-done":
		outcomes := map[string]engine.BindOutcome{"bound": engine.Bound, "failed": engine.BindFailed, "elsewhere": engine.BoundElsewhere, "vanished": engine.PodVanished,
			"recalled": engine.BindRecalled, "rejected": engine.BindRejected}
		done := engine.BindDone{Pod: s.ref(args), Outcome: outcomes[args[1]], Message: message(args[2:])}
		for _, a := range args[2:] {
			if node, ok := strings.CutPrefix(a, "on="); ok {
				done.Node = node
			}
			if by, ok := strings.CutPrefix(a, "by="); ok {
				done.Plugin = by
			}
		}
		s.step(done)
	case "unheld":
		s.begin(&engine.Hold{})
	case "no-backfill":
		s.begin(&engine.Hold{After: 10 * record.Second, For: 300 * record.Second})
	case "queue":
		c := inspect(s.engine).QueueReport().Counts
		fmt.Fprintf(&s.out, "  active %d, in flight %d, backoff %d, unschedulable %d, gated %d; events kept %d\n",
			c.Active, c.InFlight, c.Backoff, c.Unschedulable, c.Gated, s.engine.InFlightEvents())
	case "account":
		s.account(args[0])
	case "why":
		s.whyGang(args[0])
	case "where":
		r, _ := inspect(s.engine).ExplainPod("default", args[0])
		fmt.Fprintf(&s.out, "  %q, on %q, before it is bound %q\n", r.Where, r.Node, r.Before)
		if gate, reason := engine.Gate(s.engine, args[0]); gate != "" {
			fmt.Fprintf(&s.out, "  %s: %s\n", gate, reason)
		}
	default:
		s.t.Fatalf("no command %q", verb)
	}
}

func (s *story) account(node string) {
	r, ok := inspect(s.engine).ExplainNode(node)
	if !ok {
		fmt.Fprintf(&s.out, "  no node %s\n", node)
		return
	}
	for _, row := range r.Resources {
		fmt.Fprintf(&s.out, "  %-18s allocatable %d, confirmed %d, assumed %d, requested %d", row.Resource, row.Allocatable, row.Confirmed, row.Assumed, row.Requested)
		if row.HasScored {
			fmt.Fprintf(&s.out, ", scored as %d", row.Scored)
		}
		s.out.WriteByte('\n')
	}
}

func (s *story) step(ev engine.Event) {
	for _, f := range recordedStep(s.engine, ev) {
		if line := describe(f); line != "" {
			s.out.WriteString("  " + line + "\n")
		}
	}
}

// describe prints an effect in one line.
func describe(f engine.Effect) string {
	switch f := f.(type) {
	case engine.Bind:
		if f.Gang != nil {
			return fmt.Sprintf("bind %s to %s (decision %d; gang %s of %d, decision %d)", f.Pod.Name, f.Node, f.Decision, f.Gang.Name, f.Gang.Quorum, f.Gang.Decision)
		}
		return fmt.Sprintf("bind %s to %s (decision %d)", f.Pod.Name, f.Node, f.Decision)
	case engine.GangStatus:
		return fmt.Sprintf("status of %s: scheduled %v, admitted %v, %d bound, %d wait; %s %s", f.Gang, f.Scheduled, f.Admitted, f.Bound, f.Pending, f.Reason, f.Message)
	case engine.GangWhole:
		return fmt.Sprintf("gang %s is whole: %d bound, in part for %gs", f.Gang, f.Bound, float64(f.Took)/float64(record.Second))
	case engine.GangHeld:
		line := fmt.Sprintf("gang %s had room held for %gs, placed %v", f.Gang, float64(f.Took)/float64(record.Second), f.Placed)
		if f.Backfilled > 0 {
			line += fmt.Sprintf(", backfilled with %d, of which %d overran", f.Backfilled, f.Overran)
		}
		return line
	case engine.Evict:
		return fmt.Sprintf("evict %v for %s, node %q, undo %v", names(f.Victims), f.For.Name, f.Node, f.Undo)
	case engine.Recall:
		return fmt.Sprintf("recall %s from %s (decision %d)", f.Pod.Name, f.Node, f.Decision)
	case engine.Rechecked:
		return fmt.Sprintf("%s is found on %s: %d pods on their way there are judged again, %d do not fit", f.Found.Name, f.Node, f.Pods, f.Conflicts)
	case engine.Prepare:
		return fmt.Sprintf("prepare %s for %s (decision %d): %+v", f.Pod.Name, f.Node, f.Decision, f.Writes)
	case engine.Nominate:
		return fmt.Sprintf("nominate %s to %s", f.Pod.Name, f.Node)
	case engine.Release:
		return fmt.Sprintf("release %s: %+v", f.Pod.Name, f.Writes)
	case engine.Condition:
		nomination := ""
		if f.ClearNomination {
			nomination = ", nomination cleared"
		}
		return fmt.Sprintf("condition %s %s: %s (generation %d%s)", f.Pod.Name, f.Reason, f.Message, f.Generation, nomination)
	case engine.WriteEvent:
		return fmt.Sprintf("event %s %s %s %s: %s", f.Pod.Name, f.Type, f.Reason, f.Action, f.Note)
	case engine.Wake:
		return fmt.Sprintf("wake at %gs", float64(f.At)/float64(record.Second))
	case engine.Moved:
		by := ""
		if f.Move.Hint != "" {
			by = ", " + f.Move.Hint
		}
		who := f.Move.Pod.Name
		if f.Move.Gang != "" {
			who = "gang " + f.Move.Gang
		}
		return fmt.Sprintf("move %s: %s -> %s (%s%s)", who, f.Move.From, f.Move.To, f.Move.Event, by)
	case engine.Decided:
		return describeDecision(f.Decision)
	case engine.Trouble:
		return fmt.Sprintf("trouble %s: %s: %s", f.Object, f.What, f.Details)
	}
	return fmt.Sprintf("%#v", f)
}

func describeDecision(d record.Decision) string {
	if d.Verdict == record.Recalled {
		return fmt.Sprintf("decision %d: %s %s, attempt %d: %s", d.Number, d.Pod.Name, d.Verdict, d.Attempt, d.Message)
	}
	if g := d.Gang; g != nil && d.Winner == nil {
		return fmt.Sprintf("decision %d: gang %s %s, attempt %d: %s, %d of %d placed, quorum %d, held %d, %s does not fit, by %v", d.Number, g.Name,
			d.Verdict, d.Attempt, g.Verdict, g.Placed, g.Members, g.Quorum, g.Held, d.Pod.Name, d.Plugins)
	}
	if d.Winner == nil {
		return fmt.Sprintf("decision %d: %s %s, attempt %d, %d of %d nodes fit, by %v", d.Number, d.Pod.Name, d.Verdict, d.Attempt, d.Feasible, d.Nodes, d.Plugins)
	}
	line := fmt.Sprintf("decision %d: %s %s, attempt %d, %d of %d nodes fit, %d tied, %s with %d", d.Number, d.Pod.Name, d.Verdict, d.Attempt,
		d.Feasible, d.Nodes, d.Tied, d.Winner.Node, d.Winner.Total)
	if d.RunnerUp != nil {
		line += fmt.Sprintf(" before %s with %d", d.RunnerUp.Node, d.RunnerUp.Total)
	}
	return line
}

func (s *story) number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		s.t.Fatalf("%q is no number", text)
	}
	return n
}

func (s *story) ref(args []string) record.PodRef {
	ref := record.PodRef{Namespace: "default", Name: args[0], UID: args[0]}
	for _, a := range args[1:] {
		switch key, value, _ := strings.Cut(a, "="); key {
		case "uid":
			ref.UID = value
		case "namespace":
			ref.Namespace = value
		}
	}
	return ref
}

// message is what is left of words without those that say which pod is meant, and where it is.
func message(words []string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(words), func(a string) bool {
		return strings.HasPrefix(a, "uid=") || strings.HasPrefix(a, "namespace=") || strings.HasPrefix(a, "on=") ||
			strings.HasPrefix(a, "by=")
	}), " ")
}

func (s *story) node(args []string) *v1.Node {
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: args[0], Labels: map[string]string{}}}
	n.Status.Allocatable = v1.ResourceList{v1.ResourcePods: apiresource.MustParse("110")}
	for _, a := range args[1:] {
		key, value, _ := strings.Cut(a, "=")
		switch {
		case key == "unschedulable":
			n.Spec.Unschedulable = true
		case key == "taint":
			kv, effect, _ := strings.Cut(value, ":")
			k, v, _ := strings.Cut(kv, "=")
			n.Spec.Taints = append(n.Spec.Taints, v1.Taint{Key: k, Value: v, Effect: v1.TaintEffect(effect)})
		case strings.HasPrefix(key, "label."):
			n.Labels[strings.TrimPrefix(key, "label.")] = value
		case key == "no-allocatable":
			n.Status.Allocatable = nil
		default:
			n.Status.Allocatable[v1.ResourceName(key)] = apiresource.MustParse(value)
		}
	}
	return n
}

func (s *story) pod(args []string) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: args[0], Namespace: "default", UID: types.UID(args[0])}}
	p.Spec.SchedulerName = "default-scheduler"
	main := v1.Container{Name: "main", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{}}}
	for _, a := range args[1:] {
		key, value, _ := strings.Cut(a, "=")
		switch {
		case key == "on":
			p.Spec.NodeName = value
		case key == "priority":
			n := int32(s.number(value))
			p.Spec.Priority = &n
		case key == "port":
			main.Ports = append(main.Ports, v1.ContainerPort{HostPort: int32(s.number(value)), Protocol: v1.ProtocolTCP})
		case key == "gate":
			p.Spec.SchedulingGates = append(p.Spec.SchedulingGates, v1.PodSchedulingGate{Name: value})
		case strings.HasPrefix(key, "label."):
			p.Labels = map[string]string{strings.TrimPrefix(key, "label."): value}
		case strings.HasPrefix(key, "annotation."):
			metav1.SetMetaDataAnnotation(&p.ObjectMeta, strings.TrimPrefix(key, "annotation."), value)
		case key == "namespace":
			p.Namespace = value
		case strings.HasPrefix(key, "select."):
			p.Spec.NodeSelector = map[string]string{strings.TrimPrefix(key, "select."): value}
		case strings.HasPrefix(key, "prefer."):
			p.Spec.Affinity = preferring(strings.TrimPrefix(key, "prefer."), value)
		case strings.HasPrefix(key, "init."):
			r := v1.ResourceList{v1.ResourceName(strings.TrimPrefix(key, "init.")): apiresource.MustParse(value)}
			p.Spec.InitContainers = append(p.Spec.InitContainers, v1.Container{Name: "init", Resources: v1.ResourceRequirements{Requests: r}})
		case strings.HasPrefix(key, "overhead."):
			p.Spec.Overhead = v1.ResourceList{v1.ResourceName(strings.TrimPrefix(key, "overhead.")): apiresource.MustParse(value)}
		case key == "nominated":
			p.Status.NominatedNodeName = value
		case key == "uid":
			p.UID = types.UID(value)
		case key == "terminating":
			p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		case key == "version":
			p.ResourceVersion = value
		case key == "generation":
			p.Generation = s.number(value)
		case key == "owned":
			yes := true
			p.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: "j", Controller: &yes}}
		case key == "start":
			start := metav1.Unix(s.number(value), 0)
			p.Status.StartTime = &start
		case key == "deadline":
			seconds := s.number(value)
			p.Spec.ActiveDeadlineSeconds = &seconds
		case key == "lasts":
			metav1.SetMetaDataAnnotation(&p.ObjectMeta, convert.DurationAnnotation, value)
		case key == "evictable":
			metav1.SetMetaDataAnnotation(&p.ObjectMeta, convert.EvictableAnnotation, "true")
		case key == "created":
			p.CreationTimestamp = metav1.Unix(s.number(value), 0)
		case key == "other-scheduler":
			p.Spec.SchedulerName = "other"
		default:
			main.Resources.Requests[v1.ResourceName(key)] = apiresource.MustParse(value)
		}
	}
	p.Spec.Containers = []v1.Container{main}
	return p
}

func preferring(key, value string) *v1.Affinity {
	return &v1.Affinity{NodeAffinity: &v1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []v1.PreferredSchedulingTerm{{
		Weight: 1, Preference: v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{{Key: key, Operator: v1.NodeSelectorOpGt, Values: []string{value}}}},
	}}}}
}
