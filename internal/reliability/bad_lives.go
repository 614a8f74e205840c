// SPDX-License-Identifier: Apache-2.0

package reliability

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// badLives: pods with an unusual life cycle, and objects with empty parts.
func badLives() []Case {
	return []Case{
		{ID: "B23", What: "a terminating pod that a finalizer keeps", Run: stuckPods},
		{ID: "B24", What: "200 pods whose five gates are removed one by one, in any order", Run: gates},
		{ID: "B25", What: "400 pods and 40 nodes drawn from empty and null parts", Run: nothings},
		{ID: "B26", What: "creation times of the years 1 and 2999", Run: oddTimes},
		{ID: "B27", What: "pods that own each other, and one that owns itself", Run: ownerCycle},
		{ID: "B28", What: "300 pods of one generated name at once; one name made and removed 50 times", Run: namesakes},
	}
}

// stuckPods: a terminating pod that has not ended still uses its node. One that has ended does not.
func stuckPods(ctx context.Context, g *Ground) error {
	if err := g.Nodes(ctx, 1); err != nil {
		return err
	}
	stuck := g.Pod("stuck", asks("cpu", "3"), func(p *v1.Pod) { p.Finalizers = []string{"x.example.com/stuck"} })
	if err := g.Play(ctx, []*v1.Pod{stuck}, map[string]string{"stuck": "0"}); err != nil {
		return err
	}
	if err := g.Delete(ctx, "stuck"); err != nil {
		return err
	}
	pause(ctx, 2*lasting) // until the kubelet has done what it does
	api := g.Client.CoreV1().Pods(g.Name)
	now, err := api.Get(ctx, "stuck", metav1.GetOptions{})
	if err != nil || now.DeletionTimestamp == nil {
		return Unjudged("the pod is not terminating: %w", err)
	}
	waits := "!1 Insufficient cpu"
	if ended(now) {
		waits = "0"
	}
	if err := g.Play(ctx, []*v1.Pod{g.Pod("next", asks("cpu", "3"))}, map[string]string{"next": waits}); err != nil {
		return err
	}
	if !ended(now) {
		if _, err := api.Patch(ctx, "stuck", types.MergePatchType, []byte(`{"status":{"phase":"Failed"}}`), metav1.PatchOptions{}, "status"); err != nil {
			return Unjudged("end the pod: %w", err)
		}
		// The checker treats a failed pod as one that a kubelet refused.
		g.Cleanup(func(context.Context) error { return nil })
		if err := g.Wants(ctx, map[string]string{"next": "0"}); err != nil {
			return err
		}
	}
	_, err = api.Patch(ctx, "stuck", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	if err != nil {
		return Unjudged("free the pod: %w", err)
	}
	return g.Wants(ctx, map[string]string{"next": "0"})
}

func ended(p *v1.Pod) bool {
	return p.Status.Phase == v1.PodFailed || p.Status.Phase == v1.PodSucceeded
}

// gates: no pod is placed while it has a gate, and each is placed when it has none.
func gates(ctx context.Context, g *Ground) error {
	if err := g.Nodes(ctx, 4); err != nil {
		return err
	}
	const pods, each = 200, 5
	many := make([]*v1.Pod, pods)
	for i := range many {
		many[i] = g.Pod(fmt.Sprint("p", i), asks("cpu", "10m"), func(p *v1.Pod) {
			for k := range each {
				p.Spec.SchedulingGates = append(p.Spec.SchedulingGates, v1.PodSchedulingGate{Name: fmt.Sprint("x.com/g", k)})
			}
		})
	}
	if err := g.Create(ctx, many...); err != nil {
		return err
	}
	api := g.Client.CoreV1().Pods(g.Name)
	err := inParallel(pods, func(i int) error {
		left := make([]string, 0, each)
		for _, k := range rand.New(rand.NewPCG(1, uint64(i))).Perm(each) {
			left = append(left, fmt.Sprintf(`{"$patch":"delete","name":"x.com/g%d"}`, k))
		}
		for _, one := range left {
			p, err := api.Patch(ctx, fmt.Sprint("p", i), types.StrategicMergePatchType, []byte(`{"spec":{"schedulingGates":[`+one+`]}}`), metav1.PatchOptions{})
			if err != nil {
				return Unjudged("open a gate: %w", err)
			}
			if len(p.Spec.SchedulingGates) > 0 && p.Spec.NodeName != "" {
				return fmt.Errorf("pod %s is on a node and has gates %v", p.Name, p.Spec.SchedulingGates)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return g.WantsAll(ctx, "p", pods, "*")
}

// nothings draws objects whose parts are empty or null. A pod that the API server accepts must get a verdict,
// whichever.
func nothings(ctx context.Context, g *Ground) error {
	if err := g.Nodes(ctx, 2); err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(25, 1))
	err := inParallel(40, func(i int) error {
		g.mu.Lock()
		name := fmt.Sprintf("%s-empty-%d", g.Name, i)
		g.nodes = append(g.nodes, name)
		body := fmt.Sprintf(`{"apiVersion":"v1","kind":"Node","metadata":{"name":%q,"labels":{%q:%q}%s},"spec":%s,"status":%s}`, name, caseLabel, g.Name,
			some(r, `,"annotations":{}`, `,"ownerReferences":[]`, `,"finalizers":null`),
			some(r, `{}`, `null`, `{"taints":[]}`, `{"podCIDRs":[],"unschedulable":null}`, `{"taints":null,"providerID":""}`),
			some(r, `{}`, `null`, `{"allocatable":{},"conditions":[]}`, `{"allocatable":null,"images":[{}],"conditions":null}`, `{"images":[{"names":[""],"sizeBytes":-1}],"capacity":{"cpu":"1"}}`, `{"nodeInfo":{},"volumesInUse":[""],"declaredFeatures":[]}`))
		g.mu.Unlock()
		_, _, err := g.Post(ctx, "/api/v1/nodes", body)
		return err
	})
	if err != nil {
		return err
	}
	taken := map[string]string{}
	refused := 0
	for i := range 400 {
		name := fmt.Sprint("p", i)
		code, text, err := g.Post(ctx, "/api/v1/namespaces/"+g.Name+"/pods", podOfNothing(r, g.Name, name))
		if err != nil {
			return err
		}
		if code < 300 {
			taken[name] = "?"
		} else if code == 400 || code == 403 || code == 422 { // 403 is admission's
			refused++
		} else {
			return Unjudged("the API server answers %d: %s", code, text)
		}
	}
	if len(taken) < 50 {
		return Unjudged("the API server takes %d pods and refuses %d", len(taken), refused)
	}
	return g.Wants(ctx, taken)
}

// some draws one of the texts.
func some(r *rand.Rand, texts ...string) string { return texts[r.IntN(len(texts))] }

func podOfNothing(r *rand.Rand, ns, name string) string {
	container := some(r, `{"name":"c","image":"x"}`, `{"name":"c","image":"x","resources":{}}`, `{"name":"c","image":"x","resources":{"requests":{},"limits":null}}`,
		`{"name":"c","image":"x","resources":{"requests":{"cpu":"0","memory":null}},"ports":[]}`, `{"name":"c","image":"x","ports":[{"containerPort":1,"hostPort":0,"hostIP":""}],"env":null}`,
		`{"name":"c","image":"x","resources":{"claims":[]}}`, `{"name":"c","image":"x","resources":{"requests":{"example.com/none":"0"},"limits":{"example.com/none":"0"}}}`)
	affinity := some(r, `null`, `{}`, `{"nodeAffinity":{}}`, `{"podAffinity":{},"podAntiAffinity":{}}`, `{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{}]}}}`,
		`{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[],"matchFields":[]}]}}}`,
		`{"nodeAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":1,"preference":{}}]}}`,
		`{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"k"}]}}`,
		`{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"k","labelSelector":{}}]}}`,
		`{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"k","labelSelector":null,"namespaceSelector":{},"namespaces":[]}]}}`,
		`{"podAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":100,"podAffinityTerm":{"topologyKey":"k","matchLabelKeys":[],"mismatchLabelKeys":null}}]}}`,
		`{"podAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[]}}`)
	spread := some(r, `null`, `[]`, `[{"maxSkew":1,"topologyKey":"k","whenUnsatisfiable":"ScheduleAnyway"}]`, `[{"maxSkew":1,"topologyKey":"k","whenUnsatisfiable":"DoNotSchedule","labelSelector":{}}]`,
		`[{"maxSkew":1,"topologyKey":"kubernetes.io/hostname","whenUnsatisfiable":"DoNotSchedule","labelSelector":{},"matchLabelKeys":["absent"],"minDomains":1}]`,
		`[{"maxSkew":1,"topologyKey":"kubernetes.io/hostname","whenUnsatisfiable":"ScheduleAnyway","labelSelector":{"matchExpressions":[],"matchLabels":null}}]`)
	more := some(r, ``, `,"overhead":{}`, `,"resources":{}`, `,"resources":{"requests":{}}`, `,"resourceClaims":[]`, `,"volumes":[]`, `,"volumes":[{"name":"v"}]`, `,"volumes":[{"name":"v","emptyDir":{}}]`,
		`,"volumes":[{"name":"v","ephemeral":{"volumeClaimTemplate":{"spec":{}}}}]`, `,"tolerations":[{}]`, `,"tolerations":[{"operator":"Exists"}]`, `,"schedulingGates":[]`, `,"initContainers":[]`,
		`,"securityContext":null`, `,"priority":null`, `,"priorityClassName":""`, `,"os":{"name":""}`, `,"os":null`, `,"readinessGates":[]`, `,"hostNetwork":true`, `,"nodeName":""`)
	meta := some(r, ``, `,"labels":{}`, `,"labels":null`, `,"labels":{"":""}`, `,"labels":{"app":""}`, `,"annotations":{"":""}`, `,"ownerReferences":[]`, `,"finalizers":[]`)
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q%s},"spec":{"automountServiceAccountToken":false,"nodeSelector":{%q:%q},"containers":[%s],"affinity":%s,"topologySpreadConstraints":%s%s},"status":%s}`,
		name, meta, caseLabel, ns, container, affinity, spread, more, some(r, `{}`, `null`, `{"conditions":[{}]}`, `{"nominatedNodeName":""}`))
}

// oddTimes: the API server sets the creation time; the queue must tolerate any value.
func oddTimes(ctx context.Context, g *Ground) error {
	if err := g.Nodes(ctx, 1); err != nil {
		return err
	}
	want := map[string]string{"now": "0"}
	for _, year := range []string{"0001", "2999"} {
		name := "y" + year
		body := fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"creationTimestamp":"%s-01-01T00:00:00Z","managedFields":[{"time":"%s-01-01T00:00:00Z"}]},
"spec":{"automountServiceAccountToken":false,"nodeSelector":{%q:%q},"containers":[{"name":"c","image":"x"}]},"status":{"startTime":"%s-01-01T00:00:00Z","conditions":[{"type":"PodScheduled","status":"False","lastTransitionTime":"%s-01-01T00:00:00Z"}]}}`,
			name, year, year, caseLabel, g.Name, year, year)
		code, text, err := g.Post(ctx, "/api/v1/namespaces/"+g.Name+"/pods", body)
		if err != nil || code >= 300 {
			return Unjudged("the API server refuses the pod: %d %s %w", code, text, err)
		}
		want[name] = "0"
	}
	return g.Play(ctx, []*v1.Pod{g.Pod("now")}, want)
}

func ownerCycle(ctx context.Context, g *Ground) error {
	if err := g.Nodes(ctx, 1); err != nil {
		return err
	}
	gated := func(p *v1.Pod) { p.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "x.com/wait"}} }
	api := g.Client.CoreV1().Pods(g.Name)
	uids := map[string]types.UID{}
	for _, name := range []string{"a", "b", "self"} {
		p, err := api.Create(ctx, g.Pod(name, gated), metav1.CreateOptions{})
		if err != nil {
			return Unjudged("create pod: %w", err)
		}
		uids[name] = p.UID
	}
	for name, owner := range map[string]string{"a": "b", "b": "a", "self": "self"} {
		patch := fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":%q,"uid":%q,"controller":true}]},"spec":{"schedulingGates":null}}`, owner, uids[owner])
		if _, err := api.Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			return Unjudged("own a pod: %w", err)
		}
	}
	return g.Wants(ctx, map[string]string{"a": "0", "b": "0", "self": "0"})
}

// namesakes: the state of a pod must not pass to the next pod of its name.
func namesakes(ctx context.Context, g *Ground) error {
	if err := g.Nodes(ctx, 4); err != nil {
		return err
	}
	before := g.History.Bound()
	many := make([]*v1.Pod, 300)
	for i := range many {
		many[i] = g.Pod("", asks("cpu", "5m"), func(p *v1.Pod) { p.GenerateName = strings.Repeat("n", 50) + "-" })
	}
	api := g.Client.CoreV1().Pods(g.Name)
	err := inParallel(len(many), func(i int) error {
		// The API server can generate a name twice; then the create is tried again.
		for {
			_, err := api.Create(ctx, many[i], metav1.CreateOptions{})
			if err == nil || ctx.Err() != nil {
				return err
			}
			if !apierrors.IsAlreadyExists(err) {
				return Unjudged("create pod: %w", err)
			}
		}
	})
	if err != nil {
		return err
	}
	for i := range 50 {
		// Each is of another size: the last must be counted with its own.
		if err := g.Create(ctx, g.Pod("again", asks("cpu", fmt.Sprintf("%dm", 3000-i)))); err != nil {
			return err
		}
		if i%3 == 0 {
			pause(ctx, lasting/10)
		}
		if i < 49 {
			if err := g.Delete(ctx, "again"); err != nil {
				return err
			}
		}
	}
	if err := g.Wants(ctx, map[string]string{"again": "*"}); err != nil {
		return err
	}
	return eventually(ctx, "all are placed", func() string {
		pods, err := g.Pods(ctx)
		if err != nil {
			return err.Error()
		}
		waiting := 0
		for _, p := range pods {
			if p.Spec.NodeName == "" {
				waiting++
			}
		}
		if bound := g.History.Bound() - before; waiting > 0 || bound < len(many)+1 {
			return fmt.Sprintf("%d of %d wait, %d binds seen", waiting, len(pods), bound)
		}
		return ""
	})
}
