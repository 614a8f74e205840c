// SPDX-License-Identifier: Apache-2.0

package spread

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/internal/plugintest"
	"github.com/kumiki-scheduler/kumiki/record"
)

func podLabels(pairs ...string) plugintest.PodOption {
	return func(p *v1.Pod) {
		if p.Labels == nil {
			p.Labels = map[string]string{}
		}
		for i := 0; i < len(pairs); i += 2 {
			p.Labels[pairs[i]] = pairs[i+1]
		}
	}
}

func goingAway(p *v1.Pod) {
	now := metav1.Unix(1, 0)
	p.DeletionTimestamp = &now
}

// spreadOver adds a constraint that must hold on pods with app=web; change may make it another.
func spreadOver(key string, maxSkew int32, change ...func(*v1.TopologySpreadConstraint)) plugintest.PodOption {
	c := v1.TopologySpreadConstraint{TopologyKey: key, MaxSkew: maxSkew, WhenUnsatisfiable: v1.DoNotSchedule,
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}
	for _, f := range change {
		f(&c)
	}
	return func(p *v1.Pod) { p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, c) }
}

func softly(c *v1.TopologySpreadConstraint) { c.WhenUnsatisfiable = v1.ScheduleAnyway }
func atLeast(domains int32) func(*v1.TopologySpreadConstraint) {
	return func(c *v1.TopologySpreadConstraint) { c.MinDomains = &domains }
}
func affinityPolicy(policy v1.NodeInclusionPolicy) func(*v1.TopologySpreadConstraint) {
	return func(c *v1.TopologySpreadConstraint) { c.NodeAffinityPolicy = &policy }
}
func taintsPolicy(policy v1.NodeInclusionPolicy) func(*v1.TopologySpreadConstraint) {
	return func(c *v1.TopologySpreadConstraint) { c.NodeTaintsPolicy = &policy }
}
func selectingPods(s *metav1.LabelSelector) func(*v1.TopologySpreadConstraint) {
	return func(c *v1.TopologySpreadConstraint) { c.LabelSelector = s }
}

func service(name string, pairs ...string) *v1.Service {
	s := &v1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	for i := 0; i < len(pairs); i += 2 {
		if s.Spec.Selector == nil {
			s.Spec.Selector = map[string]string{}
		}
		s.Spec.Selector[pairs[i]] = pairs[i+1]
	}
	return s
}

func inZone(name string) plugintest.NodeOption { return plugintest.Labels(v1.LabelTopologyZone, name) }

func namedHost(n *v1.Node) { plugintest.Labels(v1.LabelHostname, n.Name)(n) }

// web makes pods with app=web on nodes, one for each name.
func web(nodes ...string) []any {
	var pods []any
	for i, name := range nodes {
		pods = append(pods, plugintest.Pod(fmt.Sprintf("web-%s-%d", name, i), podLabels("app", "web"), plugintest.OnNode(name)))
	}
	return pods
}

func systemSpreading() *PodTopologySpread {
	return plugintest.Must(NewPodTopologySpread(DefaultPodTopologySpreadArgs()))
}

func listSpreading(list ...v1.TopologySpreadConstraint) *PodTopologySpread {
	return plugintest.Must(NewPodTopologySpread(PodTopologySpreadArgs{DefaultConstraints: list}))
}

// fitsOn lists the nodes on which a pod fits.
func fitsOn(t *testing.T, w *plugintest.Cluster, f plugin.Filter, p *v1.Pod) string {
	t.Helper()
	var fit []string
	s := w.Store.Snapshot()
	for n := range cluster.NodeIdx(s.Rows()) {
		if node := s.Node(n); node != nil {
			if reasons, _ := w.Reasons(t, f, p, node.Name); reasons == nil {
				fit = append(fit, node.Name)
			}
		}
	}
	return strings.Join(fit, " ")
}

// What counts against maxSkew, in two zones: one pod on a1, none on b1.
// Mutants: spread-skew-off-by-one, spread-self-ignored, spread-terminating-counts, spread-any-namespace,
// spread-empty-counts, spread-soft-filters, spread-min-domains-ignored, spread-label-keys-ignored.
func TestSpreadWhatCounts(t *testing.T) {
	zones := func(extra ...any) *plugintest.Cluster {
		return plugintest.NewCluster().With(plugintest.Node("a1", inZone("a")), plugintest.Node("a2", inZone("a")), plugintest.Node("b1", inZone("b"))).With(web("a1")...).With(extra...)
	}
	mine := podLabels("app", "web", "version", "2")
	over := func(maxSkew int32, change ...func(*v1.TopologySpreadConstraint)) *v1.Pod {
		return plugintest.Pod("p", mine, spreadOver(v1.LabelTopologyZone, maxSkew, change...))
	}
	onA := func(name string, options ...plugintest.PodOption) *v1.Pod {
		return plugintest.Pod(name, append([]plugintest.PodOption{podLabels("app", "web"), plugintest.OnNode("a2")}, options...)...)
	}
	for _, c := range []struct {
		what string
		w    *plugintest.Cluster
		p    *v1.Pod
		fits string
	}{
		{"a second pod in zone a is a skew of 2", zones(), over(1), "b1"},
		{"which is allowed", zones(), over(2), "a1 a2 b1"},
		{"a third is too many", zones(onA("more")), over(2), "b1"},
		{"a pod that the selector does not match adds nothing", zones(), plugintest.Pod("p", spreadOver(v1.LabelTopologyZone, 1)), "a1 a2 b1"},
		{"pods that are being deleted do not count", zones(onA("leaves", goingAway)), over(2), "a1 a2 b1"},
		{"pods of other namespaces do not count", zones(onA("other", plugintest.InNamespace("elsewhere"))), over(2), "a1 a2 b1"},
		{"pods with other labels do not count", zones(onA("db", podLabels("app", "db"))), over(2), "a1 a2 b1"},
		{"a selector of everything counts none but the pod", zones(), over(1, selectingPods(&metav1.LabelSelector{})), "a1 a2 b1"},
		{"no selector matches none", zones(), over(1, selectingPods(nil)), "a1 a2 b1"},
		{"a preference does not filter", zones(), over(1, softly), "a1 a2 b1"},
		{"zones that are missing count as empty ones", zones(web("b1")...), over(1, atLeast(3)), ""},
		{"but not when there are enough", zones(web("b1")...), over(1, atLeast(2)), "a1 a2 b1"},
		{"pods of the same version only", zones(), over(1, func(c *v1.TopologySpreadConstraint) { c.MatchLabelKeys = []string{"version", "absent"} }), "a1 a2 b1"},
		{"labels that the pod lacks narrow nothing", zones(), over(1, func(c *v1.TopologySpreadConstraint) { c.MatchLabelKeys = []string{"absent"} }), "b1"},
		{"all constraints must hold", zones(), plugintest.Pod("p", mine, spreadOver(v1.LabelTopologyZone, 2), spreadOver(v1.LabelTopologyZone, 1)), "b1"},
	} {
		if got := fitsOn(t, c.w, systemSpreading(), c.p); got != c.fits {
			t.Errorf("%s: fits on %q, want %q", c.what, got, c.fits)
		}
	}
}

// Which nodes have a part: zone a has two pods, zone b has one, zone c none; its one node is not for the pod.
// Mutants: spread-affinity-ignored, spread-taints-ignored, spread-first-key-will, spread-all-nodes-count.
func TestSpreadWhichNodesCount(t *testing.T) {
	three := func(options ...plugintest.NodeOption) *plugintest.Cluster {
		return plugintest.NewCluster().With(plugintest.Node("a", inZone("a"), namedHost, plugintest.Labels("disk", "ssd")), plugintest.Node("b", inZone("b"), namedHost, plugintest.Labels("disk", "ssd")),
			plugintest.Node("c", append([]plugintest.NodeOption{inZone("c")}, options...)...)).With(web("a", "a", "b")...)
	}
	mine, ssd := podLabels("app", "web"), plugintest.NodeSelector("disk", "ssd")
	tainted := plugintest.Taint("k", "v", v1.TaintEffectNoSchedule)
	over := func(change ...func(*v1.TopologySpreadConstraint)) plugintest.PodOption {
		return spreadOver(v1.LabelTopologyZone, 1, change...)
	}
	for _, c := range []struct {
		what string
		w    *plugintest.Cluster
		p    *v1.Pod
		fits string
	}{
		{"zone c is the emptiest", three(), plugintest.Pod("p", mine, over()), "c"},
		{"a zone that the pod does not select is none", three(), plugintest.Pod("p", mine, ssd, over()), "b c"},
		{"nor one that its affinity leaves out", three(), plugintest.Pod("p", mine, plugintest.RequiredAffinity(plugintest.Term(plugintest.Expression("disk", v1.NodeSelectorOpExists))), over()), "b c"},
		{"unless the policy says so", three(), plugintest.Pod("p", mine, ssd, over(affinityPolicy(v1.NodeInclusionPolicyIgnore))), "c"},
		{"a tainted zone is one", three(tainted), plugintest.Pod("p", mine, over()), "c"},
		{"unless the policy says so", three(tainted), plugintest.Pod("p", mine, over(taintsPolicy(v1.NodeInclusionPolicyHonor))), "b c"},
		{"or the pod tolerates the taint", three(tainted), plugintest.Pod("p", mine, over(taintsPolicy(v1.NodeInclusionPolicyHonor)), plugintest.Toleration("k", v1.TolerationOpExists, "", "")), "c"},
		{"a taint that only repels a little matters to nobody", three(plugintest.Taint("k", "v", v1.TaintEffectPreferNoSchedule)),
			plugintest.Pod("p", mine, over(taintsPolicy(v1.NodeInclusionPolicyHonor))), "c"},
		{"a node without the other key is none", three(), plugintest.Pod("p", mine, over(), spreadOver(v1.LabelHostname, 5)), "b"},
	} {
		if got := fitsOn(t, c.w, systemSpreading(), c.p); got != c.fits {
			t.Errorf("%s: fits on %q, want %q", c.what, got, c.fits)
		}
	}
}

// Mutant: spread-no-key-resolvable.
func TestSpreadReasons(t *testing.T) {
	w := plugintest.NewCluster().With(plugintest.Node("a", inZone("a")), plugintest.Node("b", inZone("b")), plugintest.Node("bare")).With(web("a")...)
	p := plugintest.Pod("p", podLabels("app", "web"), spreadOver(v1.LabelTopologyZone, 1))
	for name, want := range map[string]struct {
		reason       string
		unresolvable bool
	}{
		"a":    {"node(s) didn't match pod topology spread constraints", false},
		"bare": {"node(s) didn't match pod topology spread constraints (missing required label)", true},
	} { // order: each node alone
		reasons, unresolvable := w.Reasons(t, systemSpreading(), p, name)
		if !slices.Equal(reasons, []string{want.reason}) || unresolvable != want.unresolvable {
			t.Errorf("%s: %q, unresolvable %v", name, reasons, unresolvable)
		}
	}
}

// Victims and nominated pods on a node move the counts of its zone, and the fewest with them.
// Mutant: spread-least-stays.
func TestSpreadSupposes(t *testing.T) {
	w := plugintest.NewCluster().With(plugintest.Node("a", inZone("a")), plugintest.Node("b", inZone("b"))).With(web("a", "a", "b")...)
	s, p := w.Store.Snapshot(), w.Intake.PendingPod(plugintest.Pod("p", podLabels("app", "web"), spreadOver(v1.LabelTopologyZone, 1)))
	f := systemSpreading().PrepareFilter(s, p).Filter.(plugin.Supposing)
	a, b := s.View(0), s.View(1)
	says := func(what string, onA, onB plugin.Code) {
		t.Helper()
		if gotA, gotB := f.Plain(s, a), f.Plain(s, b); gotA != onA || gotB != onB {
			t.Errorf("%s: %x on a, %x on b", what, gotA, gotB)
		}
	}
	says("two against one", spreadSkewed, plugin.Fit)
	victim := a.Pods[0]
	a.RemovePod(victim.UID)
	f.RemovePod(s, victim, a)
	says("one against one", plugin.Fit, plugin.Fit)
	last := b.Pods[0]
	b.RemovePod(last.UID)
	f.RemovePod(s, last, b)
	says("one against none", spreadSkewed, plugin.Fit)
	a.AddPod(victim)
	f.AddPod(s, victim, a)
	b.AddPod(last)
	f.AddPod(s, last, b)
	says("as it was", spreadSkewed, plugin.Fit)
	stranger := w.Intake.PendingPod(plugintest.Pod("stranger", podLabels("app", "web"), plugintest.InNamespace("elsewhere")))
	f.AddPod(s, stranger, b)
	says("a pod of another namespace", spreadSkewed, plugin.Fit)
}

func owned(kind, apiVersion, name string) plugintest.PodOption {
	return func(p *v1.Pod) {
		yes := true
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, Controller: &yes}}
	}
}

// Pods without constraints get the default ones with the selector of their services and controller.
// Mutants: spread-no-services, spread-no-controllers.
func TestSpreadDefaultsComeFromServicesAndControllers(t *testing.T) {
	zoneDefault := v1.TopologySpreadConstraint{TopologyKey: v1.LabelTopologyZone, MaxSkew: 1, WhenUnsatisfiable: v1.DoNotSchedule}
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "ns", Name: name} }
	byLabel := func(pairs ...string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: service("", pairs...).Spec.Selector}
	}
	w := plugintest.NewCluster().With(plugintest.Node("a", inZone("a")), plugintest.Node("b", inZone("b")),
		&v1.ReplicationController{ObjectMeta: meta("rc"), Spec: v1.ReplicationControllerSpec{Selector: map[string]string{"app": "web"}}},
		&appsv1.ReplicaSet{ObjectMeta: meta("rs"), Spec: appsv1.ReplicaSetSpec{Selector: byLabel("app", "web")}},
		&appsv1.ReplicaSet{ObjectMeta: meta("broken"), Spec: appsv1.ReplicaSetSpec{Selector: &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Near"}}}}},
		&appsv1.StatefulSet{ObjectMeta: meta("ss"), Spec: appsv1.StatefulSetSpec{Selector: byLabel("app", "web")}},
		service("db", "app", "db"), service("headless"),
		&v1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", Name: "svc"}, Spec: v1.ServiceSpec{Selector: map[string]string{"app": "web"}}},
	).With(web("a")...)
	mine := podLabels("app", "web", "version", "2")
	for _, c := range []struct {
		what string
		p    *v1.Pod
		fits string
	}{
		{"nobody's pod", plugintest.Pod("p", mine), "a b"},
		{"a replica set's", plugintest.Pod("p", mine, owned("ReplicaSet", "apps/v1", "rs")), "b"},
		{"a replication controller's", plugintest.Pod("p", mine, owned("ReplicationController", "v1", "rc")), "b"},
		{"a stateful set's", plugintest.Pod("p", mine, owned("StatefulSet", "apps/v1", "ss")), "b"},
		{"a replica set of another group", plugintest.Pod("p", mine, owned("ReplicaSet", "example.com/v1", "rs")), "a b"},
		{"a replica set of no version that parses", plugintest.Pod("p", mine, owned("ReplicaSet", "a/b/c", "rs")), "a b"},
		{"a replica set that is not known", plugintest.Pod("p", mine, owned("ReplicaSet", "apps/v1", "gone")), "a b"},
		{"a replica set whose selector does not parse", plugintest.Pod("p", mine, owned("ReplicaSet", "apps/v1", "broken")), "a b"},
		{"one with constraints of its own", plugintest.Pod("p", mine, owned("ReplicaSet", "apps/v1", "rs"), spreadOver(v1.LabelHostname, 1, softly)), "a b"},
	} {
		if got := fitsOn(t, w, listSpreading(zoneDefault), c.p); got != c.fits {
			t.Errorf("%s: fits on %q, want %q", c.what, got, c.fits)
		}
	}
	pl, p := listSpreading(zoneDefault), plugintest.Pod("p", mine)
	steps := []struct {
		change func()
		fits   string
	}{
		{func() {}, "a b"},
		{func() { w.With(service("web", "app", "web")) }, "b"},
		{func() { w.With(service("canary", "version", "2")) }, "a b"}, // both must match: no pod is of version 2 yet
		{func() { w.Store.DeleteObject(cluster.KindService, cluster.ObjectKey{Namespace: "ns", Name: "canary"}) }, "b"},
		{func() { w.With(service("web", "app", "other")) }, "a b"},
	}
	for i, step := range steps {
		if step.change(); fitsOn(t, w, pl, p) != step.fits {
			t.Errorf("step %d: fits on %q, want %q", i, fitsOn(t, w, pl, p), step.fits)
		}
	}
}

// ranking is the raw and the normalised score of every node.
func ranking(t *testing.T, w *plugintest.Cluster, pl *PodTopologySpread, p *v1.Pod, leaveOut ...string) string {
	t.Helper()
	s := w.Store.Snapshot()
	var fit []cluster.NodeIdx
	for n := range cluster.NodeIdx(s.Rows()) {
		if node := s.Node(n); node != nil && !slices.Contains(leaveOut, node.Name) {
			fit = append(fit, n)
		}
	}
	rec := w.Intake.PendingPod(p)
	score, err := pl.PrepareUncached(s, rec, fit)
	if err != nil || score == nil {
		return fmt.Sprint("not scored ", err)
	}
	raw := make([]int64, len(fit))
	score.Rows(s, fit, raw)
	normal := slices.Clone(raw)
	score.Normalize(s, fit, normal)
	var words []string
	for i, n := range fit {
		if plain := score.Plain(s, s.View(n)); plain != raw[i] {
			t.Errorf("%s: the plain form scores %d, the column form %d", s.NodeName(n), plain, raw[i])
		}
		words = append(words, fmt.Sprintf("%s:%d=%d", s.NodeName(n), raw[i], normal[i]))
	}
	return strings.Join(words, " ")
}

// Raw scores are pods*log(values+2) + maxSkew-1 over the constraints; log(4) is 1.386, log(5) is 1.609, log(3) 1.099.
// Mutants: spread-weights-alike, spread-hosts-all-fit, spread-skew-unscored, spread-keyless-ranked,
// spread-least-ignored, spread-terminating-counts.
func TestSpreadScores(t *testing.T) {
	nodes := func(extra ...any) *plugintest.Cluster {
		return plugintest.NewCluster().With(plugintest.Node("a1", inZone("a"), namedHost), plugintest.Node("a2", inZone("a"), namedHost), plugintest.Node("b1", inZone("b"), namedHost)).With(extra...)
	}
	bare := plugintest.Node("bare", inZone("b"))
	mine := podLabels("app", "web")
	byZone, byHost := spreadOver(v1.LabelTopologyZone, 1, softly), spreadOver(v1.LabelHostname, 1, softly)
	for _, c := range []struct {
		what string
		w    *plugintest.Cluster
		p    *v1.Pod
		out  []string
		want string
	}{
		{"no pods yet", nodes(), plugintest.Pod("p", mine, byZone), nil, "a1:0=100 a2:0=100 b1:0=100"},
		{"pods of the zone, by log(4)", nodes(web("a1", "a2", "a2")...), plugintest.Pod("p", mine, byZone), nil, "a1:4=0 a2:4=0 b1:0=100"},
		{"the least is turned round too", nodes(web("a1", "a2", "a2", "b1")...), plugintest.Pod("p", mine, byZone), nil, "a1:4=25 a2:4=25 b1:1=100"},
		{"pods of the namedHost, by log(5)", nodes(web("a1", "a2", "a2", "a2", "a2")...), plugintest.Pod("p", mine, byHost), nil, "a1:2=66 a2:6=0 b1:0=100"},
		{"nodes that do not fit are no hosts", nodes(web("a2", "a2", "a2", "a2")...), plugintest.Pod("p", mine, byHost), []string{"a1"}, "a2:6=0 b1:0=100"},
		{"nodes that do not fit are no hosts, nor zones", nodes(web("a2", "a2", "a2", "b1", "b1")...), plugintest.Pod("p", mine, byZone), []string{"b1"}, "a1:3=100 a2:3=100"},
		{"nodes without a key have no part", nodes(bare, plugintest.Pod("x", mine, plugintest.OnNode("bare"))).With(web("a2", "a2", "a2", "a2", "a2")...),
			plugintest.Pod("p", mine, byZone, byHost), nil, "a1:7=53 a2:15=0 b1:0=100 bare:0=0"},
		{"maxSkew takes the edge off", nodes(web("a1", "a2", "a2")...), plugintest.Pod("p", mine, spreadOver(v1.LabelTopologyZone, 4, softly)), nil, "a1:7=42 a2:7=42 b1:3=100"},
		{"pods that are being deleted do not count", nodes(plugintest.Pod("leaves", mine, plugintest.OnNode("a1"), goingAway)), plugintest.Pod("p", mine, byZone, byHost), nil, "a1:0=100 a2:0=100 b1:0=100"},
		{"a selector of everything counts none", nodes(web("a1")...), plugintest.Pod("p", mine, spreadOver(v1.LabelHostname, 1, softly, selectingPods(&metav1.LabelSelector{}))), nil, "a1:0=100 a2:0=100 b1:0=100"},
		{"constraints that must hold do not score", nodes(web("a1")...), plugintest.Pod("p", mine, spreadOver(v1.LabelHostname, 1)), nil, "not scored <nil>"},
	} {
		if got := ranking(t, c.w, systemSpreading(), c.p, c.out...); got != c.want {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
		}
	}
}

// The system defaults score hosts and zones, and rank nodes without a zone by their hosts; those stand for one more
// zone. Mutants: spread-system-needs-keys, spread-no-services.
func TestSpreadSystemDefaults(t *testing.T) {
	w := plugintest.NewCluster().With(plugintest.Node("a", inZone("a"), namedHost), plugintest.Node("b", inZone("b"), namedHost), plugintest.Node("bare", namedHost), service("web", "app", "web")).
		With(web("a", "a", "a", "bare")...)
	// Hosts and zones both number 3: three pods on host a are 3*1.609+2, in zone a 3*1.609+4.
	if got, want := ranking(t, w, systemSpreading(), plugintest.Pod("p", podLabels("app", "web"))), "a:16=25 b:6=87 bare:4=100"; got != want {
		t.Errorf("by default %s, want %s", got, want)
	}
	if got := ranking(t, w, systemSpreading(), plugintest.Pod("p", podLabels("app", "db"))); got != "not scored <nil>" {
		t.Errorf("a pod that belongs nowhere: %s", got)
	}
	list := listSpreading(v1.TopologySpreadConstraint{TopologyKey: v1.LabelHostname, MaxSkew: 3, WhenUnsatisfiable: v1.ScheduleAnyway},
		v1.TopologySpreadConstraint{TopologyKey: v1.LabelTopologyZone, MaxSkew: 5, WhenUnsatisfiable: v1.ScheduleAnyway})
	if got, want := ranking(t, w, list, plugintest.Pod("p", podLabels("app", "web"))), "a:14=42 b:6=100 bare:0=0"; got != want {
		t.Errorf("the same as a list %s, want %s", got, want)
	}
}

// What cannot be read fails the attempt with a reason; each kind of constraint only where it is needed.
func TestSpreadRefusesWhatItCannotRead(t *testing.T) {
	broken := selectingPods(&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Near"}}})
	w, pl := plugintest.NewCluster().With(plugintest.Node("a", namedHost), plugintest.Node("b", namedHost)), systemSpreading()
	s, fit := w.Store.Snapshot(), []cluster.NodeIdx{0, 1}
	hard := w.Intake.PendingPod(plugintest.Pod("hard", spreadOver(v1.LabelHostname, 1, broken)))
	soft := w.Intake.PendingPod(plugintest.Pod("soft", spreadOver(v1.LabelHostname, 1, broken, softly)))
	want := `get constraints from pod: obtaining pod's hard topology spread constraints: "Near" is not a valid label selector operator`
	if plan := pl.PrepareFilter(s, hard); plan.Err == nil || plan.Err.Error() != want {
		t.Errorf("a hard constraint: %v", plan.Err)
	}
	if score, err := pl.PrepareUncached(s, hard, fit); score != nil || err != nil || !pl.Skips(s, hard) {
		t.Errorf("a hard constraint is scored: %v, %v", score, err)
	}
	want = `calculating preScoreState: obtaining pod's soft topology spread constraints: "Near" is not a valid label selector operator`
	if _, err := pl.PrepareUncached(s, soft, fit); err == nil || err.Error() != want || pl.Skips(s, soft) {
		t.Errorf("a soft constraint: %v, skipped %v", err, pl.Skips(s, soft))
	}
	if plan := pl.PrepareFilter(s, soft); plan.Err != nil || plan.Filter != nil {
		t.Errorf("a soft constraint filters: %+v", plan)
	}
	node := plugin.Change{Event: plugin.Event{Resource: plugin.NodeObject, Action: plugin.Add}, NewNode: s.Node(0), State: s}
	if hint, _ := plugintest.HintOf(pl, hard, node); hint != plugin.QueueHint {
		t.Errorf("a change does not wake a pod whose constraints cannot be read")
	}
}

// A hundred constraints, of which one has a key that no node has.
func TestSpreadHundredConstraints(t *testing.T) {
	w := plugintest.NewCluster().With(plugintest.Node("a", inZone("a"), namedHost), plugintest.Node("b", inZone("b"), namedHost)).With(web("a")...)
	p := plugintest.Pod("p", podLabels("app", "web"))
	for i := range 99 {
		spreadOver([]string{v1.LabelTopologyZone, v1.LabelHostname}[i%2], int32(200-i), selectingPods(&metav1.LabelSelector{MatchLabels: map[string]string{"app": "web", "n": fmt.Sprint(i)}}))(p)
	}
	if got := fitsOn(t, w, systemSpreading(), p); got != "a b" {
		t.Errorf("with 99 constraints that hold it fits on %q", got)
	}
	spreadOver("nobody.has/this", 1)(p)
	reasons, unresolvable := w.Reasons(t, systemSpreading(), p, "b")
	if len(reasons) != 1 || !strings.HasSuffix(reasons[0], "(missing required label)") || !unresolvable {
		t.Errorf("a key that nobody has: %q, unresolvable %v", reasons, unresolvable)
	}
}

// Mutants: spread-hint-any-namespace, spread-hint-any-labels, spread-hint-no-toleration.
func TestSpreadWakesOnPods(t *testing.T) {
	w, pl := plugintest.NewCluster(), systemSpreading()
	p := w.Intake.PendingPod(plugintest.Pod("p", podLabels("app", "web"), spreadOver(v1.LabelTopologyZone, 1)))
	honours := w.Intake.PendingPod(plugintest.Pod("p", podLabels("app", "web"), spreadOver(v1.LabelTopologyZone, 1, taintsPolicy(v1.NodeInclusionPolicyHonor))))
	other := func(options ...plugintest.PodOption) *cluster.Pod {
		return w.Intake.Pod(plugintest.Pod("other", options...))
	}
	tolerant := w.Intake.PendingPod(plugintest.Pod("p", podLabels("app", "web"), plugintest.Toleration("k", v1.TolerationOpExists, "", "")))
	webOn, dbOn := other(podLabels("app", "web"), plugintest.OnNode("a")), other(podLabels("app", "db"), plugintest.OnNode("a"))
	for _, c := range []struct {
		what     string
		p        *cluster.Pod
		action   plugin.Action
		was, is  *cluster.Pod
		expected plugin.Hint
	}{
		{"a pod that counts comes", p, plugin.Add, nil, webOn, plugin.QueueHint},
		{"a pod that does not count comes", p, plugin.Add, nil, dbOn, plugin.SkipHint},
		{"a pod that waits comes", p, plugin.Add, nil, other(podLabels("app", "web")), plugin.SkipHint},
		{"one that is nominated comes", p, plugin.Add, nil, other(podLabels("app", "web"), plugintest.Nominated("a")), plugin.QueueHint},
		{"one of another namespace comes", p, plugin.Add, nil, other(podLabels("app", "web"), plugintest.OnNode("a"), plugintest.InNamespace("elsewhere")), plugin.SkipHint},
		{"a pod that counts goes", p, plugin.Delete, webOn, nil, plugin.QueueHint},
		{"a pod that does not count goes", p, plugin.Delete, dbOn, nil, plugin.SkipHint},
		{"one of another namespace goes", p, plugin.Delete, other(podLabels("app", "web"), plugintest.OnNode("a"), plugintest.InNamespace("elsewhere")), nil, plugin.SkipHint},
		{"a pod begins to count", p, plugin.UpdatePodLabel, dbOn, webOn, plugin.QueueHint},
		{"a pod ceases to count", p, plugin.UpdatePodLabel, webOn, dbOn, plugin.QueueHint},
		{"a label changes that does not matter", p, plugin.UpdatePodLabel, webOn, other(podLabels("app", "web", "x", "y"), plugintest.OnNode("a")), plugin.SkipHint},
		{"the pod's own labels change", p, plugin.UpdatePodLabel, p, w.Intake.PendingPod(plugintest.Pod("p", podLabels("app", "db"))), plugin.QueueHint},
		{"the pod tolerates more, and taints do not matter", p, plugin.UpdatePodToleration, p, tolerant, plugin.SkipHint},
		{"the pod tolerates more, and taints matter", honours, plugin.UpdatePodToleration, honours, tolerant, plugin.QueueHint},
	} {
		ch := plugin.Change{Event: plugin.Event{Resource: plugin.AssignedPod, Action: c.action}, OldPod: c.was, NewPod: c.is, State: w.Store.Snapshot()}
		if c.is != nil && c.is.UID == c.p.UID {
			ch.Event.Resource = plugin.TargetPod
		}
		if hint, asked := plugintest.HintOf(pl, c.p, ch); hint != c.expected || !asked {
			t.Errorf("%s: hint %d, asked %v", c.what, hint, asked)
		}
	}
}

// Mutant: spread-hint-any-node.
func TestSpreadWakesOnNodes(t *testing.T) {
	w, pl := plugintest.NewCluster(), systemSpreading()
	p := w.Intake.PendingPod(plugintest.Pod("p", spreadOver(v1.LabelTopologyZone, 1), spreadOver("rack", 1)))
	made := func(options ...plugintest.NodeOption) *cluster.Node {
		return w.Intake.Node(plugintest.Node("n", options...))
	}
	full, bare := made(inZone("a"), plugintest.Labels("rack", "1")), made(inZone("a"))
	for _, c := range []struct {
		what     string
		action   plugin.Action
		was, is  *cluster.Node
		expected plugin.Hint
	}{
		{"a node with all keys comes", plugin.Add, nil, full, plugin.QueueHint},
		{"one without comes", plugin.Add, nil, bare, plugin.SkipHint},
		{"a node with all keys goes", plugin.Delete, full, nil, plugin.QueueHint},
		{"one without goes", plugin.Delete, bare, nil, plugin.SkipHint},
		{"a node gains a key", plugin.UpdateNodeLabel, bare, full, plugin.QueueHint},
		{"a node loses one", plugin.UpdateNodeLabel, full, bare, plugin.QueueHint},
		{"a value changes", plugin.UpdateNodeLabel, full, made(inZone("b"), plugintest.Labels("rack", "1")), plugin.QueueHint},
		{"another label changes", plugin.UpdateNodeLabel, full, made(inZone("a"), plugintest.Labels("rack", "1", "x", "y")), plugin.SkipHint},
		{"a value changes on a node that has no part", plugin.UpdateNodeLabel, bare, made(inZone("b")), plugin.SkipHint},
		{"taints change", plugin.UpdateNodeTaint, full, made(inZone("a"), plugintest.Labels("rack", "1"), plugintest.Taint("k", "v", v1.TaintEffectNoSchedule)), plugin.QueueHint},
		{"taints change on a node that has no part", plugin.UpdateNodeTaint, bare, made(inZone("a"), plugintest.Taint("k", "v", v1.TaintEffectNoSchedule)), plugin.SkipHint},
	} {
		ch := plugin.Change{Event: plugin.Event{Resource: plugin.NodeObject, Action: c.action}, OldNode: c.was, NewNode: c.is, State: w.Store.Snapshot()}
		if hint, asked := plugintest.HintOf(pl, p, ch); hint != c.expected || !asked {
			t.Errorf("%s: hint %d, asked %v", c.what, hint, asked)
		}
	}
	if _, asked := plugintest.HintOf(pl, p, plugin.Change{Event: plugin.Event{Resource: plugin.NodeObject, Action: plugin.UpdateNodeAllocatable}, OldNode: full, NewNode: full}); asked {
		t.Errorf("a node with more room is none of its business")
	}
}

func TestSpreadRefusesBadArguments(t *testing.T) {
	good := v1.TopologySpreadConstraint{TopologyKey: "k", MaxSkew: 1, WhenUnsatisfiable: v1.DoNotSchedule}
	for want, change := range map[string]func(*PodTopologySpreadArgs){
		"exclude each other":     func(a *PodTopologySpreadArgs) { a.System = true },
		"maxSkew 0":              func(a *PodTopologySpreadArgs) { a.DefaultConstraints[0].MaxSkew = 0 },
		"no topologyKey":         func(a *PodTopologySpreadArgs) { a.DefaultConstraints[0].TopologyKey = "" },
		"whenUnsatisfiable \"\"": func(a *PodTopologySpreadArgs) { a.DefaultConstraints[0].WhenUnsatisfiable = "" },
		"has a labelSelector":    func(a *PodTopologySpreadArgs) { a.DefaultConstraints[0].LabelSelector = &metav1.LabelSelector{} },
	} { // order: each fault alone
		args := PodTopologySpreadArgs{DefaultConstraints: []v1.TopologySpreadConstraint{good}}
		change(&args)
		if pl, err := NewPodTopologySpread(args); err == nil || pl != nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), PodTopologySpreadName) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func TestSpreadAdvises(t *testing.T) {
	w := plugintest.NewCluster().With(plugintest.Node("a", inZone("a")), plugintest.Node("b", inZone("b"))).With(web("a")...)
	s, pl := w.Store.Snapshot(), listSpreading(v1.TopologySpreadConstraint{TopologyKey: "rack", MaxSkew: 1, WhenUnsatisfiable: v1.DoNotSchedule})
	for _, c := range []struct {
		p    *v1.Pod
		want string
	}{
		{plugintest.Pod("p", spreadOver(v1.LabelTopologyZone, 1)), "raise maxSkew, or make room on nodes where topology.kubernetes.io/zone has fewer of the pods than on a"},
		{plugintest.Pod("p", spreadOver(v1.LabelHostname, 1)), "label a with kubernetes.io/hostname, over which the pod is to be spread"},
		{plugintest.Pod("p"), "label a with rack, over which the pod is to be spread"},
	} {
		r := record.Remedy{Plugin: PodTopologySpreadName, Node: "a"}
		if pl.Advise(s.View(0), w.Intake.PendingPod(c.p), &r); r.Do != c.want {
			t.Errorf("advice %q, want %q", r.Do, c.want)
		}
	}
}
