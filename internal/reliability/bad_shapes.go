// SPDX-License-Identifier: Apache-2.0

package reliability

import (
	"context"
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// badShapes: objects that are large, and names that are odd.
func badShapes() []Case {
	return []Case{
		{ID: "B10", What: "10,000 labels, 256 KiB of annotations, 700 kB of environment", Run: largePods},
		{ID: "B11", What: "200 nodes with 2,000 label keys each that no other node has", Limit: 3 * time.Minute, Run: labelBomb},
		{ID: "B12", What: "affinities with 200 terms of 200 values each", Run: wideAffinity},
		{ID: "B13", What: "topology keys that are empty, that no node has, or of 317 characters", Run: oddTopologyKeys},
		{ID: "B14", What: "selectors that the API server takes and that cannot be read", Run: unreadableSelectors},
		{ID: "B18", What: "scheduler names: empty, unknown, 253 characters, a look-alike", Run: schedulerNames},
		{ID: "B20", What: "node names of no and of 253 characters, a host name twice, half the nodes without zone", Run: nodeNames},
	}
}

func largePods(ctx context.Context, g *Ground) error {
	if err := g.Nodes(ctx, 1, func(n *v1.Node) { n.Labels["large"] = "no" }); err != nil {
		return err
	}
	bomb := func(labels map[string]string) {
		for i := range 10_000 {
			labels[fmt.Sprintf("bomb-%05d", i)] = fmt.Sprint(i)
		}
	}
	if err := g.CreateNodes(ctx, g.Node("large", func(n *v1.Node) { bomb(n.Labels) })); err != nil {
		return err
	}
	return g.Play(ctx, []*v1.Pod{
		g.Pod("labels", func(p *v1.Pod) { bomb(p.Labels) }),
		g.Pod("annotations", func(p *v1.Pod) { p.Annotations = map[string]string{"a": strings.Repeat("x", 256<<10-1)} }),
		g.Pod("environment", func(p *v1.Pod) {
			for i := range 7 {
				p.Spec.Containers[0].Env = append(p.Spec.Containers[0].Env, v1.EnvVar{Name: fmt.Sprint("E", i), Value: strings.Repeat("x", 100_000)})
			}
		}),
		g.Pod("selects", func(p *v1.Pod) { bomb(p.Spec.NodeSelector) }),
		g.Pod("not-quite", func(p *v1.Pod) { bomb(p.Spec.NodeSelector); p.Spec.NodeSelector["bomb-09999"] = "other" }),
	}, map[string]string{"labels": "*", "annotations": "*", "environment": "*", "selects": "large", "not-quite": "!didn't match Pod's node affinity/selector"})
}

func labelBomb(ctx context.Context, g *Ground) error {
	nodes := make([]*v1.Node, 200)
	for i := range nodes {
		nodes[i] = g.Node(fmt.Sprint(i), func(n *v1.Node) {
			for k := range 2000 {
				n.Labels[fmt.Sprintf("n%d-k%d", i, k)] = "v"
			}
		})
	}
	if err := g.CreateNodes(ctx, nodes...); err != nil {
		return err
	}
	var pods []*v1.Pod
	want := map[string]string{}
	for i := range 40 {
		name := fmt.Sprint("p", i)
		pods = append(pods, g.Pod(name, func(p *v1.Pod) { p.Spec.NodeSelector[fmt.Sprintf("n%d-k%d", i*5, i*50)] = "v" }))
		want[name] = fmt.Sprint(i * 5)
	}
	return g.Play(ctx, pods, want)
}

func wideAffinity(ctx context.Context, g *Ground) error {
	if err := g.Nodes(ctx, 4, func(n *v1.Node) { n.Labels["number"] = g.short(n.Name) }); err != nil {
		return err
	}
	values := func(term int) []string {
		out := make([]string, 200)
		for i := range out {
			out[i] = fmt.Sprintf("t%d-v%d", term, i)
		}
		return out
	}
	near := g.Pod("node-terms", func(p *v1.Pod) {
		required, preferred := &v1.NodeSelector{}, []v1.PreferredSchedulingTerm{}
		for t := range 200 {
			in := values(t)
			if t == 199 {
				in[199] = "2" // the only value that a node has
			}
			term := v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{{Key: "number", Operator: v1.NodeSelectorOpIn, Values: in}}}
			required.NodeSelectorTerms = append(required.NodeSelectorTerms, term)
			preferred = append(preferred, v1.PreferredSchedulingTerm{Weight: 1, Preference: term})
		}
		p.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required, PreferredDuringSchedulingIgnoredDuringExecution: preferred}}
	})
	if err := g.Play(ctx, []*v1.Pod{near}, map[string]string{"node-terms": "2"}); err != nil {
		return err
	}
	away := g.Pod("pod-terms", func(p *v1.Pod) {
		a := &v1.PodAntiAffinity{}
		for t := range 200 {
			in := values(t)
			if t == 199 {
				in[199] = g.Name // what every pod here is labelled with
			}
			term := v1.PodAffinityTerm{TopologyKey: v1.LabelHostname, LabelSelector: &metav1.LabelSelector{
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: in}}}}
			a.RequiredDuringSchedulingIgnoredDuringExecution = append(a.RequiredDuringSchedulingIgnoredDuringExecution, term)
		}
		p.Spec.Affinity = &v1.Affinity{PodAntiAffinity: a}
	})
	return g.Play(ctx, []*v1.Pod{away}, map[string]string{"pod-terms": "0|1|3"})
}

// spreads adds a spread constraint over the case's pods.
func spreads(key string, skew int32, when v1.UnsatisfiableConstraintAction, change ...func(*v1.TopologySpreadConstraint)) func(*v1.Pod) {
	return func(p *v1.Pod) {
		c := v1.TopologySpreadConstraint{TopologyKey: key, MaxSkew: skew, WhenUnsatisfiable: when, LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels}}
		for _, f := range change {
			f(&c)
		}
		p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, c)
	}
}

// keepsAway is required anti-affinity with the case's own pods.
func keepsAway(key string) func(*v1.Pod) {
	return func(p *v1.Pod) {
		p.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{
			{TopologyKey: key, LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels}}}}}
	}
}

func oddTopologyKeys(ctx context.Context, g *Ground) error {
	domain := strings.Repeat(strings.Repeat("d", 62)+".", 4) + "d" // 253 characters
	long := domain + "/" + strings.Repeat("n", 63)
	if err := g.Nodes(ctx, 2); err != nil {
		return err
	}
	if err := g.CreateNodes(ctx, g.Node("long", func(n *v1.Node) { n.Labels[long] = "v" })); err != nil {
		return err
	}
	for i, bad := range []*v1.Pod{g.Pod("empty-spread", spreads("", 1, v1.DoNotSchedule)), g.Pod("empty-affinity", keepsAway(""))} {
		code, text, err := g.Offer(ctx, bad)
		if err != nil {
			return err
		}
		if code != 422 {
			return Unjudged("the API server takes pod %d: %d %s", i, code, text)
		}
	}
	other := func(p *v1.Pod) { p.Labels["app"] = "other-" + p.Name }
	return g.Play(ctx, []*v1.Pod{
		// The API server takes a key that no label can have.
		g.Pod("too-long", other, spreads(long+"n", 1, v1.DoNotSchedule)),
		g.Pod("absent", other, spreads("nobody.has/this", 1, v1.DoNotSchedule)), g.Pod("absent-soft", other, spreads("nobody.has/this", 1, v1.ScheduleAnyway)),
		g.Pod("absent-away", other, keepsAway("nobody.has/this")), g.Pod("long", other, spreads(long, 1, v1.DoNotSchedule)), g.Pod("long-away", other, keepsAway(long)),
	}, map[string]string{"too-long": "!didn't match pod topology spread constraints (missing required label)", "absent": "!didn't match pod topology spread constraints (missing required label)", "absent-soft": "*", "absent-away": "*", "long": "long", "long-away": "*"})
}

// unreadableSelectors: an invalid selector must not be interpreted. A required term that cannot match rejects the
// pod; an invalid preference is reported, or does not count.
func unreadableSelectors(ctx context.Context, g *Ground) error {
	if err := g.Nodes(ctx, 2, func(n *v1.Node) { n.Labels["size"] = "big" }); err != nil {
		return err
	}
	term := func(op v1.NodeSelectorOperator, value string) v1.NodeSelectorTerm {
		return v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{{Key: "size", Operator: op, Values: []string{value}}}}
	}
	required := func(t v1.NodeSelectorTerm) func(*v1.Pod) {
		return func(p *v1.Pod) {
			p.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{t}}}}
		}
	}
	preferred := func(t v1.NodeSelectorTerm) func(*v1.Pod) {
		return func(p *v1.Pod) {
			p.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []v1.PreferredSchedulingTerm{{Weight: 1, Preference: t}}}}
		}
	}
	want := map[string]string{}
	for _, one := range []struct {
		pod  *v1.Pod
		want string
	}{
		{g.Pod("gt-text", required(term(v1.NodeSelectorOpGt, "big"))), "!Unschedulable&didn't match Pod's node affinity/selector"},
		{g.Pod("lt-huge", required(term(v1.NodeSelectorOpLt, "99999999999999999999"))), "!Unschedulable&didn't match Pod's node affinity/selector"},
		{g.Pod("not-a-label", required(term(v1.NodeSelectorOpIn, "not a label!"))), "!node affinity"},
		{g.Pod("prefers-text", preferred(term(v1.NodeSelectorOpGt, "big"))), "?"},
		{g.Pod("prefers-not-a-label", preferred(term(v1.NodeSelectorOpIn, "not a label!"))), "?"},
		{g.Pod("ordinary"), "*"},
	} {
		code, _, err := g.Offer(ctx, one.pod)
		if err != nil {
			return err
		}
		if code < 300 {
			want[one.pod.Name] = one.want
		}
	}
	if len(want) < 4 {
		return Unjudged("the API server takes %d of the pods", len(want))
	}
	return g.Wants(ctx, want)
}

func schedulerNames(ctx context.Context, g *Ground) error {
	if err := g.Nodes(ctx, 1); err != nil {
		return err
	}
	named := func(name string) func(*v1.Pod) { return func(p *v1.Pod) { p.Spec.SchedulerName = name } }
	// "-" means that no scheduler touches the pod: it has no node and no verdict.
	want := map[string]string{"empty": "*", "unknown": "-", "long": "-", "look-alike": "-", "upper": "-", "last": "*"}
	for name, p := range map[string]*v1.Pod{
		"empty": g.Pod("empty", named("")), "unknown": g.Pod("unknown", named("nobody")), "long": g.Pod("long", named(strings.Repeat("s", 253))),
		"look-alike": g.Pod("look-alike", named("dеfault-scheduler")), "upper": g.Pod("upper", named("Default-scheduler")), // the first е is Cyrillic
	} {
		code, _, err := g.Offer(ctx, p)
		if err != nil {
			return err
		}
		if code >= 300 {
			delete(want, name)
		}
	}
	return g.Play(ctx, []*v1.Pod{g.Pod("last")}, want)
}

func nodeNames(ctx context.Context, g *Ground) error {
	for _, name := range []string{"", "."} {
		code, _, err := g.Post(ctx, "/api/v1/nodes", fmt.Sprintf(`{"apiVersion":"v1","kind":"Node","metadata":{"name":%q}}`, name))
		if err != nil || code < 400 {
			return Unjudged("the API server takes a node named %q: %d %w", name, code, err)
		}
	}
	zone := func(name string) func(*v1.Node) { return func(n *v1.Node) { n.Labels[v1.LabelTopologyZone] = name } }
	host := func(name string) func(*v1.Node) { return func(n *v1.Node) { n.Labels[v1.LabelHostname] = name } }
	long := g.Node(strings.Repeat("l", 252-len(g.Name)), host("long"), zone("z"))
	if err := g.CreateNodes(ctx, g.Node("a", host("twin")), g.Node("b", host("twin")), g.Node("c", zone("y")), long); err != nil {
		return err
	}
	away := func(name string) *v1.Pod {
		return g.Pod(name, func(p *v1.Pod) { p.Labels["app"] = "away" }, keepsAway(v1.LabelHostname))
	}
	if err := g.Play(ctx, []*v1.Pod{away("p0"), away("p1"), away("p2")}, map[string]string{"p0": "*", "p1": "*", "p2": "*"}); err != nil {
		return err
	}
	pods, err := g.Pods(ctx)
	if err != nil {
		return unjudged{err}
	}
	twins := 0
	for _, p := range pods {
		if on := g.short(p.Spec.NodeName); on == "a" || on == "b" {
			twins++
		}
	}
	if twins != 1 {
		return fmt.Errorf("%d pods that keep away from each other are on two nodes of one host name", twins)
	}
	zoned := func(name string) *v1.Pod {
		return g.Pod(name, func(p *v1.Pod) { p.Labels["app"] = "zoned" }, spreads(v1.LabelTopologyZone, 1, v1.DoNotSchedule))
	}
	in := "c|" + g.short(long.Name)
	return g.Play(ctx, []*v1.Pod{away("p3"), zoned("q0"), zoned("q1"), zoned("q2"), zoned("q3")},
		map[string]string{"p3": "!didn't match pod anti-affinity rules", "q0": in, "q1": in, "q2": in, "q3": in})
}
