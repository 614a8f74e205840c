// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
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
	"github.com/kumiki-scheduler/kumiki/record"
)

var rewrite = flag.Bool("rewrite", false, "write the effects found into the scenario files; read the diff before you keep it")

// TestStyleScenarios runs testdata/*.txt: style_*.txt show the rules of each style, issue_N_*.txt known failures of
// coscheduling, named after their issues in scheduler-plugins. A file has prose after #, commands, and the effects of
// each command indented under it. Commands:
//
//	style NAME          starts anew with this style
//	node NAME [cpu=4] [label.KEY=VALUE] [unschedulable]
//	pod NAME [cpu=1] [gang=NAME size=N] [on=NODE] [gate=G] [select.KEY=VALUE] [nominated=NODE] [created=SECONDS] [terminating]
//	pod-gone NAME
//	tick SECONDS        synced        cycle [TIMES]
//	bind-done NAME bound
//	queue               prints how many units are where
//	where POD           prints where a pod is
//	used NODE           prints what the pods on a node take
func TestStyleScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := (&script{t: t}).play(raw)
			if *rewrite {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			} else if !bytes.Equal(got, raw) {
				t.Errorf("the scenario went another way:\n%s", firstDifference(string(raw), string(got)))
			}
		})
	}
}

// firstDifference shows the first line that differs, and some lines before it.
func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	n := 0
	for n < min(len(w), len(g))-1 && w[n] == g[n] {
		n++
	}
	from := max(0, n-6)
	return fmt.Sprintf("line %d\n--- written\n%s\n--- happened\n%s", n+1, strings.Join(w[from:min(n+3, len(w))], "\n"),
		strings.Join(g[from:min(n+3, len(g))], "\n"))
}

// script is a scenario that is being played.
type script struct {
	t         *testing.T
	scheduler *scheduler
	intake    *convert.Intake
	out       bytes.Buffer
}

// play returns the scenario with the effects that it has now.
func (s *script) play(text []byte) []byte {
	for sc := bufio.NewScanner(bytes.NewReader(text)); sc.Scan(); {
		line := sc.Text()
		if strings.HasPrefix(line, "  ") {
			continue // an effect
		}
		s.out.WriteString(line + "\n")
		if words := strings.Fields(line); len(words) > 0 && words[0] != "#" {
			s.command(words[0], words[1:])
		}
	}
	return s.out.Bytes()
}

func (s *script) command(verb string, args []string) {
	switch verb {
	case "style":
		for _, named := range Styles() {
			if named.Name == args[0] && named.Style != nil {
				s.scheduler, s.intake = newScheduler(*named.Style), convert.NewIntake()
				return
			}
		}
		s.t.Fatalf("no style %q", args[0])
	case "node":
		s.step(engine.NodeSet{Node: s.intake.Node(scriptNode(args))})
	case "pod":
		s.step(engine.PodSet{Pod: s.pod(args)})
	case "pod-gone":
		s.step(engine.PodGone{Pod: record.PodRef{Namespace: "default", Name: args[0], UID: args[0]}})
	case "tick":
		s.step(engine.Tick{Now: record.Time(s.number(args[0])) * record.Second})
	case "synced":
		s.step(engine.Synced{})
	case "cycle":
		times := 1
		if len(args) > 0 {
			times = s.number(args[0])
		}
		for range times {
			s.step(engine.Cycle{})
		}
	case "bind-done":
		s.step(engine.BindDone{Pod: record.PodRef{Namespace: "default", Name: args[0], UID: args[0]}})
	case "queue":
		n := s.scheduler.queue.Counts()
		fmt.Fprintf(&s.out, "  active %d, in flight %d, backoff %d, unschedulable %d, gated %d; events kept %d\n", n[record.Active], n[record.InFlight],
			n[record.Backoff], n[record.Unschedulable], n[record.Gated], s.scheduler.queue.InFlightEvents())
	case "where":
		s.where(cluster.UID(args[0]))
	case "used":
		s.used(args[0])
	default:
		s.t.Fatalf("no command %q", verb)
	}
}

// where prints where a pod waits, its node, and the plugin that it waits for.
func (s *script) where(uid cluster.UID) {
	view := s.scheduler.store.Snapshot()
	where, node, before := record.Gone, "", []string(nil)
	unit, sub, queued := s.scheduler.queue.Lookup(uid)
	if _, n, _, placed := view.PodOn(uid); placed {
		node = view.NodeName(n)
	} else if queued {
		where = sub
	}
	if r := s.scheduler.reserved[uid]; r != nil && !r.bindSent {
		before = []string{s.scheduler.permit.Plugin}
	}
	fmt.Fprintf(&s.out, "  %q, on %q, before it is bound %q\n", where, node, before)
	if queued && unit.Gate != "" {
		fmt.Fprintf(&s.out, "  %s: %s\n", unit.Gate, unit.GateReason)
	}
}

// used prints what the pods on a node take.
func (s *script) used(node string) {
	view := s.scheduler.store.Snapshot()
	n, _ := view.Find(node)
	pods, reserved := 0, 0
	view.EachPod(n, func(_ *cluster.Pod, assumed bool) {
		if pods++; assumed {
			reserved++
		}
	})
	fmt.Fprintf(&s.out, "  %d pods, %d of them reserved and not bound\n", pods, reserved)
}

func (s *script) step(ev engine.Event) {
	for _, f := range s.scheduler.Step(ev) {
		fmt.Fprintf(&s.out, "  %s\n", describe(f))
	}
}

// describe prints an effect on one line.
func describe(f engine.Effect) string {
	switch f := f.(type) {
	case engine.Bind:
		return fmt.Sprintf("bind %s to %s (decision %d)", f.Pod.Name, f.Node, f.Decision)
	case engine.Nominate:
		return fmt.Sprintf("nominate %s to %s", f.Pod.Name, f.Node)
	case engine.Condition:
		cleared := ""
		if f.ClearNomination {
			cleared = ", nomination cleared"
		}
		return fmt.Sprintf("condition %s %s: %s (generation %d%s)", f.Pod.Name, f.Reason, f.Message, f.Generation, cleared)
	case engine.WriteEvent:
		return fmt.Sprintf("event %s %s %s %s: %s", f.Pod.Name, f.Type, f.Reason, f.Action, f.Note)
	case engine.Wake:
		return fmt.Sprintf("wake at %gs", float64(f.At)/float64(record.Second))
	case engine.Moved:
		hint := ""
		if f.Move.Hint != "" {
			hint = ", " + f.Move.Hint
		}
		return fmt.Sprintf("move %s: %s -> %s (%s%s)", f.Move.Pod.Name, f.Move.From, f.Move.To, f.Move.Event, hint)
	case engine.Decided:
		return describeDecision(f.Decision)
	}
	return fmt.Sprintf("%#v", f)
}

func describeDecision(d record.Decision) string {
	line := fmt.Sprintf("decision %d: %s %s, attempt %d, %d of %d nodes fit", d.Number, d.Pod.Name, d.Verdict, d.Attempt, d.Feasible, d.Nodes)
	if d.Winner == nil {
		return line + fmt.Sprintf(", by %v", d.Plugins)
	}
	line += fmt.Sprintf(", %d tied, %s with %d", d.Tied, d.Winner.Node, d.Winner.Total)
	if d.RunnerUp != nil {
		line += fmt.Sprintf(" before %s with %d", d.RunnerUp.Node, d.RunnerUp.Total)
	}
	return line
}

func (s *script) number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		s.t.Fatalf("%q is no number", text)
	}
	return n
}

func scriptNode(args []string) *v1.Node {
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: args[0], Labels: map[string]string{}}}
	n.Status.Allocatable = v1.ResourceList{v1.ResourcePods: apiresource.MustParse("110")}
	for _, a := range args[1:] {
		key, value, _ := strings.Cut(a, "=")
		label, labelled := strings.CutPrefix(key, "label.")
		switch {
		case key == "unschedulable":
			n.Spec.Unschedulable = true
		case labelled:
			n.Labels[label] = value
		default:
			n.Status.Allocatable[v1.ResourceName(key)] = apiresource.MustParse(value)
		}
	}
	return n
}

func (s *script) pod(args []string) *cluster.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: args[0], Namespace: "default", UID: types.UID(args[0])}}
	p.Spec.SchedulerName = v1.DefaultSchedulerName
	requests := v1.ResourceList{}
	mark := cluster.GangMark{Key: cluster.GangKey{Source: cluster.GangOfAnnotation, Namespace: "default"}}
	for _, a := range args[1:] {
		key, value, _ := strings.Cut(a, "=")
		label, selects := strings.CutPrefix(key, "select.")
		switch {
		case key == "gang":
			mark.Key.Name = value
		case key == "size":
			mark.Size = s.number(value)
		case key == "on":
			p.Spec.NodeName = value
		case key == "gate":
			p.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: value}}
		case selects:
			p.Spec.NodeSelector = map[string]string{label: value}
		case key == "nominated":
			p.Status.NominatedNodeName = value
		case key == "created":
			p.CreationTimestamp = metav1.Unix(int64(s.number(value)), 0)
		case key == "terminating":
			p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		default:
			requests[v1.ResourceName(key)] = apiresource.MustParse(value)
		}
	}
	p.Spec.Containers = []v1.Container{{Name: "main", Resources: v1.ResourceRequirements{Requests: requests}}}
	c := s.intake.Pod(p)
	if mark.Key.Name != "" {
		c.Gang = &mark
	}
	return c
}
