// SPDX-License-Identifier: Apache-2.0

package reliability

import (
	"context"
	"fmt"
	"math"
	"time"

	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// badRules: constraints, priorities, tolerations and nominations at the limits of what is valid.
func badRules() []Case {
	return []Case{
		{ID: "B15", What: "100 spread constraints, maxSkew and minDomains of 2^31-1", Run: extremeSpread},
		{ID: "B16", What: "priorities of -2^31 and 10^9 whose classes are deleted", Run: lostPriorities},
		{ID: "B17", What: "nominations forged by a user, one of them to no node", Run: forgedNominations},
		{ID: "B19", What: "1,000 tolerations, tolerations with Gt and Lt, a taint with an empty key", Run: tolerations},
	}
}

func extremeSpread(ctx context.Context, g *Ground) error {
	keys := func(n *v1.Node) {
		for i := range 100 {
			n.Labels[fmt.Sprint("key", i)] = "v"
		}
	}
	if err := g.CreateNodes(ctx, g.Node("0"), g.Node("1", keys), g.Node("2")); err != nil {
		return err
	}
	own := func(p *v1.Pod) { p.Labels["app"] = p.Name }
	many := func(n int) func(*v1.Pod) {
		return func(p *v1.Pod) {
			for i := range n {
				spreads(fmt.Sprint("key", i), 1, []v1.UnsatisfiableConstraintAction{v1.DoNotSchedule, v1.ScheduleAnyway}[i%10/9])(p)
			}
		}
	}
	const most = math.MaxInt32
	domains := func(c *v1.TopologySpreadConstraint) { n := int32(most); c.MinDomains = &n }
	together := func(p *v1.Pod) { p.Labels["app"] = "together" }
	err := g.Play(ctx, []*v1.Pod{g.Pod("hundred", own, many(100)), g.Pod("one-too-many", own, many(102)),
		g.Pod("skewed-0", together, spreads(v1.LabelHostname, most, v1.DoNotSchedule)),
		g.Pod("skewed-1", together, spreads(v1.LabelHostname, most, v1.DoNotSchedule, domains)),
	}, map[string]string{"hundred": "1", "one-too-many": "!didn't match pod topology spread constraints (missing required label)", "skewed-0": "*", "skewed-1": "*"})
	if err != nil {
		return err
	}
	// Fewer domains than demanded: the least count is 0, so that each host takes one.
	few := func(i int) *v1.Pod {
		return g.Pod(fmt.Sprint("few", i), func(p *v1.Pod) { p.Labels["app"] = "few" }, spreads(v1.LabelHostname, 1, v1.DoNotSchedule, domains))
	}
	if err := g.Play(ctx, []*v1.Pod{few(0), few(1), few(2)}, map[string]string{"few0": "*", "few1": "*", "few2": "*"}); err != nil {
		return err
	}
	return g.Play(ctx, []*v1.Pod{few(3)}, map[string]string{"few3": "!3 node(s) didn't match pod topology spread constraints"})
}

// lostPriorities: pods keep the priority from their class, and the highest is scheduled first.
func lostPriorities(ctx context.Context, g *Ground) error {
	if err := g.Nodes(ctx, 1); err != nil {
		return err
	}
	never := v1.PreemptNever
	classes := g.Client.SchedulingV1().PriorityClasses()
	pods := []*v1.Pod{g.Pod("middle", asks("cpu", "3"))}
	want := map[string]string{"middle": "!Insufficient cpu"}
	pods[0].Spec.PreemptionPolicy = nil
	for name, value := range map[string]int32{"lowest": math.MinInt32, "highest": 1_000_000_000} {
		class := g.Name + "-" + name
		if _, err := classes.Create(ctx, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: class}, Value: value, PreemptionPolicy: &never}, metav1.CreateOptions{}); err != nil {
			return Unjudged("create priority class: %w", err)
		}
		pods = append(pods, g.Pod(name, asks("cpu", "3"), func(p *v1.Pod) { p.Spec.PriorityClassName = class }))
		want[name] = "!Insufficient cpu"
	}
	if _, err := classes.Create(ctx, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: g.Name + "-over"}, Value: math.MaxInt32}, metav1.CreateOptions{}); err == nil {
		return Unjudged("the API server takes a priority of 2^31-1 from a user")
	}
	if err := g.Play(ctx, []*v1.Pod{g.Pod("filler", asks("cpu", "2"))}, map[string]string{"filler": "0"}); err != nil {
		return err
	}
	if err := g.Play(ctx, pods, want); err != nil {
		return err
	}
	for _, name := range []string{"lowest", "highest"} {
		if err := classes.Delete(ctx, g.Name+"-"+name, metav1.DeleteOptions{}); err != nil {
			return Unjudged("delete priority class: %w", err)
		}
	}
	for i, name := range []string{"highest", "middle", "lowest"} {
		pause(ctx, 2500*time.Millisecond) // no backoff is left that could decide in place of the priority
		if err := g.Delete(ctx, []string{"filler", "highest", "middle"}[i]); err != nil {
			return err
		}
		if want[name] = "0"; i > 0 {
			delete(want, []string{"highest", "middle"}[i-1])
		}
		if err := g.Wants(ctx, want); err != nil {
			return err
		}
	}
	return nil
}

// forgedNominations: a nomination by a user is a hint. It must not keep a pod off a node that it fits, nor place it
// on a node that it does not fit.
func forgedNominations(ctx context.Context, g *Ground) error {
	if err := g.CreateNodes(ctx, g.Node("small", offers("cpu", "1")), g.Node("large")); err != nil {
		return err
	}
	gated := func(p *v1.Pod) { p.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "x.com/wait"}} }
	forge := map[string]string{"to-nobody": "nobody", "to-small": g.Name + "-small", "to-large": g.Name + "-large"}
	if err := g.Create(ctx, g.Pod("to-nobody", gated, asks("cpu", "1")), g.Pod("to-small", gated, asks("cpu", "2")), g.Pod("to-large", gated, asks("cpu", "500m"))); err != nil {
		return err
	}
	api := g.Client.CoreV1().Pods(g.Name)
	for pod, node := range forge {
		if _, err := api.Patch(ctx, pod, types.MergePatchType, fmt.Appendf(nil, `{"status":{"nominatedNodeName":%q}}`, node), metav1.PatchOptions{}, "status"); err != nil {
			return Unjudged("forge a nomination: %w", err)
		}
	}
	for pod := range forge {
		if _, err := api.Patch(ctx, pod, types.MergePatchType, []byte(`{"spec":{"schedulingGates":null}}`), metav1.PatchOptions{}); err != nil {
			return Unjudged("open a gate: %w", err)
		}
	}
	if err := g.Wants(ctx, map[string]string{"to-nobody": "*", "to-small": "large", "to-large": "*"}); err != nil {
		return err
	}
	// A pod that fits nowhere and claims a node: its requests must not be reserved without end.
	if err := g.Play(ctx, []*v1.Pod{g.Pod("hopeless", asks("cpu", "100"))}, map[string]string{"hopeless": "!2 Insufficient cpu"}); err != nil {
		return err
	}
	if _, err := api.Patch(ctx, "hopeless", types.MergePatchType, fmt.Appendf(nil, `{"status":{"nominatedNodeName":%q}}`, g.Name+"-large"), metav1.PatchOptions{}, "status"); err != nil {
		return Unjudged("forge a nomination: %w", err)
	}
	pause(ctx, lasting)
	if err := g.Play(ctx, []*v1.Pod{g.Pod("beside")}, map[string]string{"beside": "?"}); err != nil {
		return err
	}
	if err := g.Delete(ctx, "hopeless"); err != nil {
		return err
	}
	return g.Play(ctx, []*v1.Pod{g.Pod("after")}, map[string]string{"beside": "*", "after": "*"})
}

func tolerations(ctx context.Context, g *Ground) error {
	taint := func(key, value string) func(*v1.Node) {
		return func(n *v1.Node) {
			n.Spec.Taints = append(n.Spec.Taints, v1.Taint{Key: key, Value: value, Effect: v1.TaintEffectNoSchedule})
		}
	}
	code, _, err := g.Post(ctx, "/api/v1/nodes", `{"apiVersion":"v1","kind":"Node","metadata":{"name":"`+g.Name+`-empty"},"spec":{"taints":[{"key":"","effect":"NoSchedule"}]}}`)
	if err != nil || code < 400 {
		return Unjudged("the API server takes a taint with an empty key: %d %w", code, err)
	}
	if err := g.CreateNodes(ctx, g.Node("one", taint("k500", "v")), g.Node("many", func(n *v1.Node) {
		for i := range 300 {
			taint(fmt.Sprint("k", i), "v")(n)
		}
	})); err != nil {
		return err
	}
	thousand := func(value string) func(*v1.Pod) {
		return func(p *v1.Pod) {
			for i := range 1000 {
				p.Spec.Tolerations = append(p.Spec.Tolerations, v1.Toleration{Key: fmt.Sprint("k", i), Operator: v1.TolerationOpEqual, Value: value, Effect: v1.TaintEffectNoSchedule})
			}
		}
	}
	all := func(p *v1.Pod) { p.Spec.Tolerations = []v1.Toleration{{Operator: v1.TolerationOpExists}} }
	want := map[string]string{"thousand": "*", "wrong": "!untolerated taint", "all": "*", "none": "!untolerated taint"}
	numeric := g.Pod("numeric", func(p *v1.Pod) {
		p.Spec.Tolerations = []v1.Toleration{{Key: "k500", Operator: "Gt", Value: "5", Effect: v1.TaintEffectNoSchedule}, {Key: "k500", Operator: "Lt", Value: "v", Effect: v1.TaintEffectNoSchedule}}
	})
	if code, _, err = g.Offer(ctx, numeric); err != nil {
		return err
	}
	if code < 300 {
		want["numeric"] = "!untolerated taint"
	}
	return g.Play(ctx, []*v1.Pod{g.Pod("thousand", thousand("v")), g.Pod("wrong", thousand("w")), g.Pod("all", all), g.Pod("none")}, want)
}
