// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/app/command/tape"
	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/record"
	"github.com/kumiki-scheduler/kumiki/sim"
	"github.com/kumiki-scheduler/kumiki/sim/scenario"
	"github.com/kumiki-scheduler/kumiki/sim/size"
)

// sizing is a call of kumiki simulate size.
type sizing struct {
	io      streams
	plugins app.Plugins
	out     output
	from    string
	pods    string
	like    string
	profile string
	seeds   string
	most    int
	add     bool
}

func newSizeCommand(io streams, plugins app.Plugins) *cobra.Command {
	s := &sizing{io: io, plugins: plugins}
	c := &cobra.Command{
		Use:   "size --from CAPTURE --like node/NAME [--pods FILE]",
		Short: "Count the nodes of one shape that given pods need",
		Long: `Find the fewest nodes with which the scheduler places all pods, by a binary search over the number of
nodes for several orders of the pods, and a number of nodes with fewer than which no scheduler can.

The shape is that of a captured node, and each new node runs copies of its DaemonSet pods. The pods are those of a file
of manifests; without --pods, all pods of the capture that do not belong to their node. With --add, nodes are added to
the captured cluster, and its running pods stay where they are.`,
		Example: `  kumiki simulate size --from monday.tape --like node/worker-1 --pods shop.yaml
  kumiki simulate size --from monday.tape --like node/worker-1
  kumiki simulate size --from monday.tape --like node/worker-1 --pods shop.yaml --add`,
		Args: args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error { return s.run() },
	}
	f := c.Flags()
	f.StringVar(&s.from, "from", "", "capture, recording or bundle of an incident; its end counts")
	f.StringVar(&s.like, "like", "", "the shape of the nodes, as node/NAME of the capture")
	f.StringVar(&s.pods, "pods", "", "manifests of the pods (default: the pods of the capture)")
	f.StringVar(&s.profile, "profile", "", "scheduler configuration, "+profileUsage)
	f.StringVar(&s.seeds, "seeds", "1-3", "seeds of random orders, as 42-51 or 1,2,3")
	f.IntVar(&s.most, "max-nodes", 0, "most nodes that are tried (default: as many as there are pods)")
	f.BoolVar(&s.add, "add", false, "count the nodes to add to the captured cluster")
	s.out.addFlag(c)
	return c
}

// sizeReport is the output of kumiki simulate size.
type sizeReport struct {
	Pods     int    `json:"pods"`
	Shape    string `json:"shape"`
	Daemons  int    `json:"podsOfEachNode"`
	Present  int    `json:"presentNodes"`
	Verdict  string `json:"verdict"`
	IsProved bool   `json:"proved"`
	size.Answer
}

func (s *sizing) run() error {
	p, err := s.problem()
	if err != nil {
		return usageError{fmt.Errorf("size: %w", err)}
	}
	answer, err := p.Find()
	if err != nil {
		return fmt.Errorf("size: %w", err)
	}
	r := sizeReport{Pods: len(p.Pods), Shape: p.Shape.Name, Daemons: len(p.Daemons), Present: len(p.Nodes),
		IsProved: answer.Exact(), Answer: answer}
	r.Verdict = fmt.Sprintf("between %d and %d nodes", answer.AtLeast, answer.Fewest)
	if r.IsProved {
		r.Verdict = fmt.Sprintf("%d nodes; fewer cannot hold the pods", answer.Fewest)
	}
	return s.out.print(s.io.Out, r, func(bool) error { return s.show(r) })
}

func (s *sizing) show(r sizeReport) error {
	added := ""
	if s.add {
		added = fmt.Sprintf(", added to %d nodes", r.Present)
	}
	fmt.Fprintf(s.io.Out, "%s\n\n%d pods on nodes as %s, with %d pods of each node%s\n", r.Verdict, r.Pods, r.Shape,
		r.Daemons, added)
	fmt.Fprintf(s.io.Out, "at least %d: %s\n", r.AtLeast, r.Reason)
	for _, o := range r.Orders {
		found := fmt.Sprintf("%d nodes", o.Nodes)
		if o.Nodes < 0 {
			found = "not with as many nodes as were tried"
		}
		fmt.Fprintf(s.io.Out, "order %s: %s\n", o.Name, found)
	}
	return nil
}

// problem reads the files.
func (s *sizing) problem() (*size.Problem, error) {
	name, is := strings.CutPrefix(s.like, "node/")
	switch {
	case s.from == "":
		return nil, errors.New("name a capture: --from FILE")
	case !is || name == "":
		return nil, fmt.Errorf("--like must be node/NAME, is %q", s.like)
	case s.add && s.pods == "":
		return nil, errors.New("--add needs --pods: the captured pods have their nodes")
	case s.most < 0:
		return nil, fmt.Errorf("--max-nodes must not be negative, is %d", s.most)
	}
	seeds, err := scenario.Seeds(s.seeds)
	if err != nil {
		return nil, fmt.Errorf("--seeds: %w", err)
	}
	c, err := profileConfig(s.plugins, s.profile)
	if err != nil {
		return nil, err
	}
	snap, err := readSnapshot(s.from, s.plugins)
	if err != nil {
		return nil, err
	}
	p := &size.Problem{At: snap.At, Objects: snap.Objects(), Shape: snap.Node(name), Seeds: seeds, Most: s.most}
	if p.Shape == nil {
		return nil, fmt.Errorf("--like: the capture has no node %s%s", name, similar(name, snap.Nodes()))
	}
	if s.add {
		p.Nodes = snap.Nodes()
	}
	for _, pod := range snap.Pods() {
		switch {
		case pod.OfNode && pod.NodeName == name:
			p.Daemons = append(p.Daemons, pod)
		}
		switch {
		case s.add && pod.NodeName != "":
			p.Bound = append(p.Bound, pod)
		case s.pods == "" && !pod.OfNode && !pod.Terminating:
			rec := unbound(pod)
			p.Pods = append(p.Pods, &rec)
		}
	}
	if s.pods != "" {
		if p.Pods, err = readPods(s.pods, app.GangRules(c)); err != nil {
			return nil, err
		}
	}
	if len(p.Pods) == 0 {
		return nil, errors.New("there are no pods to place")
	}
	p.Make, err = stepper(s.plugins, c, namesOf(p.Pods))
	return p, err
}

// unbound returns a pod as if it had just been created.
func unbound(p *cluster.Pod) cluster.Pod {
	rec := *p
	rec.NodeName, rec.Nominated, rec.Condition, rec.UnschedulableSince = "", "", cluster.Condition{}, 0
	rec.Bound, rec.Start = nil, 0
	rec.Terminating, rec.GoneBy, rec.DeletedAt, rec.Preempted, rec.EvictionPending = false, 0, 0, false, false
	return rec
}

// similar suggests a name of a node.
func similar(name string, nodes []*cluster.Node) string {
	var names []string
	for _, n := range nodes {
		names = append(names, n.Name)
	}
	if near := scenario.Closest(name, names); near != "" {
		return "; did you mean " + near + "?"
	}
	return ""
}

// readSnapshot reads the cluster at the end of a capture or recording.
func readSnapshot(from string, plugins app.Plugins) (*scenario.Snapshot, error) {
	names, err := tape.Files(from)
	if err != nil {
		return nil, fmt.Errorf("--from: %w", err)
	}
	snap := &scenario.Snapshot{}
	if err := tape.Events(names, plugins, snap.Add); err != nil {
		return nil, fmt.Errorf("--from %w", err)
	}
	return snap, nil
}

// readPods reads the pods of a file of manifests.
func readPods(path string, rules convert.GangRules) (out []*cluster.Pod, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--pods: %w", err)
	}
	list, err := scenario.ReadManifests(text)
	if err != nil {
		return nil, fmt.Errorf("--pods %s:\n%w", path, err)
	}
	intake, uids := convert.NewIntake(), map[cluster.UID]bool{}
	intake.DeclareGangs(rules)
	for _, p := range scenario.Pods(list) {
		rec := intake.Pod(p)
		if uids[rec.UID] {
			return nil, fmt.Errorf("--pods %s: two pods have the name %s", path, rec.Key())
		}
		uids[rec.UID] = true
		out = append(out, rec)
	}
	return out, nil
}

// simulatedConfig reads a configuration, or returns the default one for an empty path.
func simulatedConfig(plugins app.Plugins, path string) (config.Resolved, error) {
	if path == "" {
		return plugins.DefaultConfig(), nil
	}
	c, err := plugins.ReadConfig(path)
	if err == nil && len(c.Extenders) > 0 {
		err = errors.New("a simulation calls no extenders")
	}
	if err != nil {
		return c, fmt.Errorf("configuration %s: %w", path, err)
	}
	return c, nil
}

// namesOf returns the scheduler names of pods.
func namesOf(pods []*cluster.Pod) (names []string) {
	for _, p := range pods {
		names = append(names, p.Spec.SchedulerName)
	}
	return names
}

// stepper returns what makes an engine of a configuration that schedules the pods of all given scheduler names.
func stepper(plugins app.Plugins, c config.Resolved, names []string) (func() sim.Stepper, error) {
	c.Profiles = slices.Clone(c.Profiles)
	served := map[string]bool{} // scheduler name -> there is a profile of it
	for _, p := range c.Profiles {
		served[p.SchedulerName] = true
	}
	for _, name := range names {
		if !served[name] {
			served[name] = true
			alias := c.Profiles[0]
			alias.SchedulerName = name
			c.Profiles = append(c.Profiles, alias)
		}
	}
	made := func() (sim.Stepper, error) {
		cfg, err := plugins.EngineConfig(c)
		cfg.UnschedulableTimeout = record.Time(app.DefaultOptions().UnschedulableTimeout)
		return engine.New(cfg), err
	}
	if _, err := made(); err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	return func() sim.Stepper {
		e, err := made()
		if err != nil {
			panic(fmt.Sprintf("making an engine a second time: %v", err))
		}
		return e
	}, nil
}
