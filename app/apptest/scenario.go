// SPDX-License-Identifier: Apache-2.0

package apptest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/message"
	"github.com/kumiki-scheduler/kumiki/host/framework"
	"github.com/kumiki-scheduler/kumiki/kube/intake"
	"github.com/kumiki-scheduler/kumiki/record"
)

// updateVariable is the environment variable that makes Scenarios write the files.
const updateVariable = "KUMIKI_UPDATE_SCENARIOS"

// Scenarios runs the files that match a pattern, each as a subtest, with the profiles of a configuration file. A file
// has commands, comments after #, and indented below each command the decisions that follow from it. The test fails if
// the decisions are others; with KUMIKI_UPDATE_SCENARIOS=1 in the environment it writes the files instead. Commands:
//
//	node NAME [RESOURCE=AMOUNT] [label.KEY=VALUE] [taint=KEY=VALUE:EFFECT]
//	node-gone NAME
//	pod NAME [RESOURCE=AMOUNT] [label.KEY=VALUE] [note.KEY=VALUE] [select.KEY=VALUE] [priority=N] [scheduler=NAME]
//	    [on=NODE] [group=NAME]
//	pod-gone NAME
//	group NAME [MINCOUNT [TOPOLOGYKEY]]
//	object KIND [NAMESPACE/]NAME [YAML]
//	object-gone KIND [NAMESPACE/]NAME
//	other RESOURCE added|updated|deleted [NAMESPACE/]NAME [YAML]
//	wait SECONDS
//
// note adds an annotation, as pod_group and pod_group_size for a gang, if the configuration reads them.
//
// A node, a pod or an object of a known name is a new version of it. A node has 110 pods, 4 CPUs and 8 GiB if it does
// not say otherwise. The YAML of an object is in one line, such as {provisioner: example.com/fast}. The kind must be
// one that a plugin of the configuration reads (plugin.ObjectReader), and plugins find only the fields that are kept of
// a watched object. The RESOURCE of another object, which only plugins of kube-scheduler's framework wait for, is
// PLURAL.VERSION.GROUP; an update has one version only. Binds and evictions succeed at once.
func Scenarios(t *testing.T, plugins app.Plugins, configuration, pattern string) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios %s: %v", pattern, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got, err := Play(plugins, configuration, string(want))
			switch {
			case err != nil:
				t.Fatalf("%s: %v", file, err)
			case got == string(want):
			case os.Getenv(updateVariable) != "":
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			default:
				t.Errorf("%s: other decisions than written; %s=1 writes these:\n%s", file, updateVariable, got)
			}
		})
	}
}

// cycleLimit bounds the decisions that one command leads to.
const cycleLimit = 10_000

// scenario is a scenario in progress.
type scenario struct {
	engine *engine.Engine
	host   *framework.Host // of plugins of kube-scheduler's framework
	posted []engine.Event  // by these plugins, not stepped yet
	intake *convert.Intake
	kinds  []cluster.Kind     // that a scheduler with the configuration watches
	pods   map[string]*v1.Pod // name -> newest version
	now    record.Time
	out    bytes.Buffer
}

// Play runs a script in the form of Scenarios with the profiles of a configuration file, and returns it with the
// decisions.
func Play(plugins app.Plugins, configuration, script string) (string, error) {
	c, err := plugins.ReadConfig(configuration)
	if err != nil {
		return "", err
	}
	s, err := newScenario(plugins, c)
	if err != nil {
		return "", err
	}
	for number, text := range strings.Split(strings.TrimSuffix(script, "\n"), "\n") {
		if strings.HasPrefix(text, " ") {
			continue // a decision of the time when the file was written
		}
		s.out.WriteString(text + "\n")
		words := strings.Fields(text)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if err := s.command(words[0], words[1:]); err != nil {
			return "", fmt.Errorf("line %d: %w", number+1, err)
		}
	}
	return s.out.String(), nil
}

// newScenario starts a scheduler without nodes and pods.
func newScenario(plugins app.Plugins, c config.Resolved) (*scenario, error) {
	s := &scenario{intake: convert.NewIntake(), pods: map[string]*v1.Pod{}, now: record.Second}
	limits := c.Kumiki.Hosted
	limits.Check = true
	cfg, host, err := plugins.Hosted(c, framework.Env{
		Limits: limits,
		Post:   func(ev engine.Event) { s.posted = append(s.posted, ev) },
		Report: func(p framework.Problem) {
			fmt.Fprintf(&s.out, "  plugin %s failed at %s: %v\n", p.Plugin, p.Point, p.Err)
		},
	})
	if err != nil {
		return nil, err
	}
	cfg.UnschedulableTimeout = 300 * record.Second
	s.intake.DeclareGangs(app.GangRules(c))
	s.engine, s.host, s.kinds = engine.New(cfg), host, plugins.Kinds(c, cfg)
	host.ReadPending(s.engine.View().AllPending)
	if plugins.Hosts(c) {
		s.intake.KeepFull()
	}
	s.step(engine.Tick{Now: s.now})
	s.step(engine.Synced{})
	return s, nil
}

// command executes a line.
func (s *scenario) command(verb string, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("%s of what?", verb)
	}
	switch verb {
	case "node":
		n, err := node(args)
		if err != nil {
			return err
		}
		s.step(engine.NodeSet{Node: s.intake.Node(n)})
	case "node-gone":
		s.step(engine.NodeGone{Name: args[0]})
	case "pod":
		p, err := pod(args)
		if err != nil {
			return err
		}
		s.set(p)
	case "pod-gone":
		s.step(engine.PodGone{Pod: record.PodRef{Namespace: metav1.NamespaceDefault, Name: args[0], UID: args[0]}})
	case "group":
		if err := s.group(args); err != nil {
			return err
		}
	case "object", "object-gone":
		if err := s.object(verb, args); err != nil {
			return err
		}
	case "other":
		if err := s.other(args); err != nil {
			return err
		}
	case "wait":
		seconds, err := strconv.ParseInt(args[0], 10, 64)
		if err != nil {
			return fmt.Errorf("wait: %q is no number of seconds", args[0])
		}
		s.now += record.Time(seconds) * record.Second
		s.step(engine.Tick{Now: s.now})
	default:
		return fmt.Errorf("there is no command %s", verb)
	}
	for range cycleLimit {
		switch {
		case len(s.posted) > 0:
			ev := s.posted[0]
			s.posted = s.posted[1:]
			s.step(ev)
		case s.engine.Ready():
			s.step(engine.Cycle{})
		default:
			return nil
		}
	}
	return fmt.Errorf("%s: still decisions to make after %d of them", verb, cycleLimit)
}

// other executes a line about an object that the scheduler does not keep.
func (s *scenario) other(args []string) error {
	if len(args) < 3 {
		return errors.New("other needs a resource, what happened, and a name")
	}
	obj := &unstructured.Unstructured{}
	if text := strings.Join(args[3:], " "); text != "" {
		if err := yaml.Unmarshal([]byte(text), &obj.Object); err != nil {
			return fmt.Errorf("other %s: %w", args[2], err)
		}
	}
	obj.SetNamespace(metav1.NamespaceDefault)
	obj.SetName(args[2])
	if namespace, name, named := strings.Cut(args[2], "/"); named {
		obj.SetNamespace(namespace)
		obj.SetName(name)
	}
	ev := engine.ForeignObject{Resource: args[0]}
	switch args[1] {
	case "added":
		ev.Change, ev.New = message.ForeignAdded, obj
	case "updated":
		ev.Change, ev.Old, ev.New = message.ForeignUpdated, obj, obj
	case "deleted":
		ev.Change, ev.Old = message.ForeignDeleted, obj
	default:
		return fmt.Errorf("other %s: %q is not added, updated or deleted", args[2], args[1])
	}
	s.step(ev)
	return nil
}

// object executes a line about an object that is neither a pod nor a node.
func (s *scenario) object(verb string, args []string) error {
	if len(args) < 2 {
		return fmt.Errorf("%s %s: without a name", verb, args[0])
	}
	kind := cluster.Kind(args[0])
	if !slices.Contains(s.kinds, kind) {
		return fmt.Errorf("%s of kind %s: no plugin of the configuration reads it, so it is not watched; read are %v",
			verb, kind, s.kinds)
	}
	namespace, name, namespaced := strings.Cut(args[1], "/")
	if !namespaced {
		namespace, name = "", args[1]
	}
	if verb == "object-gone" {
		s.step(engine.ObjectGone{Kind: kind, Key: cluster.ObjectKey{Namespace: namespace, Name: name}})
		return nil
	}
	obj := cluster.EmptyObject(kind)
	if err := yaml.UnmarshalStrict([]byte(strings.Join(args[2:], " ")), obj); err != nil {
		return fmt.Errorf("object %s %s: %w", kind, args[1], err)
	}
	obj.SetNamespace(namespace)
	obj.SetName(name)
	s.step(engine.ObjectSet{Object: intake.Trim(obj)})
	return nil
}

// group executes a line about a native pod group, which is basic without a count.
func (s *scenario) group(args []string) error {
	key := cluster.GangKey{Source: cluster.GangOfGroup, Namespace: metav1.NamespaceDefault, Name: args[0]}
	gang := &cluster.Gang{Key: key, Basic: len(args) == 1}
	gang.Namespace, gang.Name, gang.UID = key.Namespace, key.Object().Name, types.UID(args[0])
	if len(args) > 1 {
		count, err := strconv.Atoi(args[1])
		if err != nil {
			return fmt.Errorf("group %s: %q is no number of pods", args[0], args[1])
		}
		gang.MinCount = count
	}
	if len(args) > 2 {
		gang.Topology = []cluster.GangTopology{{Key: args[2], Required: true}}
	}
	s.step(engine.ObjectSet{Object: gang})
	return nil
}

func (s *scenario) set(p *v1.Pod) {
	s.pods[p.Name] = p
	s.step(engine.PodSet{Pod: s.intake.Pod(p)})
}

// step gives an event to the engine, writes its decisions, and answers its requests.
func (s *scenario) step(ev engine.Event) {
	effects := slices.Clone(s.engine.Step(ev)) // the answers are steps, too
	if after := s.host.Observe(ev); after != nil {
		after()
	}
	for _, effect := range effects {
		switch f := effect.(type) {
		case engine.Decided:
			s.decided(f.Decision)
		case engine.WriteEvent:
			if f.Type == v1.EventTypeWarning {
				fmt.Fprintf(&s.out, "  %s waits: %s\n", f.Pod.Name, f.Note)
			}
		case engine.Prepare:
			s.step(engine.WritesDone{Pod: f.Pod, Decision: f.Decision})
		case engine.Bind:
			if f.Via == framework.Via {
				if _, err := s.host.Bind(context.Background(), f.Pod, f.Node); err != nil &&
					!errors.Is(err, framework.ErrNative) {
					s.step(engine.BindDone{Pod: f.Pod, Node: f.Node}.Failed(err))
					continue
				}
			}
			s.step(engine.BindDone{Pod: f.Pod, Node: f.Node, Outcome: engine.Bound})
			bound := s.pods[f.Pod.Name].DeepCopy()
			bound.Spec.NodeName = f.Node
			s.set(bound)
		case engine.Evict:
			s.step(engine.EvictDone{For: f.For, Decision: f.Decision})
			for _, victim := range f.Victims {
				fmt.Fprintf(&s.out, "  %s is evicted for %s\n", victim.Name, f.For.Name)
				s.step(engine.PodGone{Pod: victim})
			}
		}
	}
}

// decided writes a decision that placed a pod. The event of a pod that waits says more than its decision.
func (s *scenario) decided(d record.Decision) {
	if d.Winner == nil {
		return
	}
	fmt.Fprintf(&s.out, "  %s runs on %s, %d of %d nodes fit, score %d", d.Pod.Name, d.Winner.Node, d.Feasible, d.Nodes,
		d.Winner.Total)
	if d.RunnerUp != nil {
		fmt.Fprintf(&s.out, " before %s with %d", d.RunnerUp.Node, d.RunnerUp.Total)
	}
	s.out.WriteByte('\n')
}

// node makes the node of a line.
func node(args []string) (*v1.Node, error) {
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: args[0], Labels: map[string]string{}}}
	n.Status.Allocatable = v1.ResourceList{v1.ResourcePods: resource.MustParse("110"),
		v1.ResourceCPU: resource.MustParse("4"), v1.ResourceMemory: resource.MustParse("8Gi")}
	for _, a := range args[1:] {
		key, value, _ := strings.Cut(a, "=")
		label, isLabel := strings.CutPrefix(key, "label.")
		switch {
		case isLabel:
			n.Labels[label] = value
		case key == "taint":
			pair, effect, _ := strings.Cut(value, ":")
			k, v, _ := strings.Cut(pair, "=")
			n.Spec.Taints = append(n.Spec.Taints, v1.Taint{Key: k, Value: v, Effect: v1.TaintEffect(effect)})
		default:
			if err := amount(n.Status.Allocatable, key, value); err != nil {
				return nil, fmt.Errorf("node %s: %w", args[0], err)
			}
		}
	}
	return n, nil
}

// pod makes the pod of a line.
func pod(args []string) (*v1.Pod, error) {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: args[0],
		UID: types.UID(args[0]), Labels: map[string]string{}}}
	p.Spec.SchedulerName = v1.DefaultSchedulerName
	requests := v1.ResourceList{}
	for _, a := range args[1:] {
		key, value, _ := strings.Cut(a, "=")
		label, isLabel := strings.CutPrefix(key, "label.")
		noted, isNote := strings.CutPrefix(key, "note.")
		selected, isSelector := strings.CutPrefix(key, "select.")
		switch {
		case isLabel:
			p.Labels[label] = value
		case isNote:
			metav1.SetMetaDataAnnotation(&p.ObjectMeta, noted, value)
		case isSelector:
			if p.Spec.NodeSelector == nil {
				p.Spec.NodeSelector = map[string]string{}
			}
			p.Spec.NodeSelector[selected] = value
		case key == "group":
			p.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: &value}
		case key == "on":
			p.Spec.NodeName = value
		case key == "scheduler":
			p.Spec.SchedulerName = value
		case key == "priority":
			n, err := strconv.ParseInt(value, 10, 32)
			if err != nil {
				return nil, fmt.Errorf("pod %s: priority %q: %w", args[0], value, err)
			}
			priority := int32(n)
			p.Spec.Priority = &priority
		default:
			if err := amount(requests, key, value); err != nil {
				return nil, fmt.Errorf("pod %s: %w", args[0], err)
			}
		}
	}
	p.Spec.Containers = []v1.Container{{Name: "main", Resources: v1.ResourceRequirements{Requests: requests}}}
	return p, nil
}

func amount(list v1.ResourceList, name, text string) error {
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return fmt.Errorf("%s=%s: %w", name, text, err)
	}
	list[v1.ResourceName(name)] = q
	return nil
}
