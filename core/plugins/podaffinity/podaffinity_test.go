// SPDX-License-Identifier: Apache-2.0

package podaffinity

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/internal/plugintest"
	"github.com/kumiki-scheduler/kumiki/record"
)

func wears(pairs ...string) plugintest.PodOption {
	return func(p *v1.Pod) { p.Labels = pairsOf(pairs) }
}

func pairsOf(pairs []string) map[string]string {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return m
}

// podsBy is a term about pods with these labels, near by the label key of their nodes.
func podsBy(key string, pairs ...string) v1.PodAffinityTerm {
	return v1.PodAffinityTerm{TopologyKey: key, LabelSelector: &metav1.LabelSelector{MatchLabels: pairsOf(pairs)}}
}

// podsWhere is podsBy with one expression.
func podsWhere(key, label string, op metav1.LabelSelectorOperator, values ...string) v1.PodAffinityTerm {
	return v1.PodAffinityTerm{TopologyKey: key, LabelSelector: selectWhere(label, op, values...)}
}

func selectWhere(label string, op metav1.LabelSelectorOperator, values ...string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: label, Operator: op, Values: values}}}
}

func ofSpaces(t v1.PodAffinityTerm, names ...string) v1.PodAffinityTerm {
	t.Namespaces = names
	return t
}

func ofSpacesWith(t v1.PodAffinityTerm, sel *metav1.LabelSelector) v1.PodAffinityTerm {
	t.NamespaceSelector = sel
	return t
}

// withKeys names label keys that the API server has merged into the selector already.
func withKeys(t v1.PodAffinityTerm, match, mismatch string) v1.PodAffinityTerm {
	t.MatchLabelKeys, t.MismatchLabelKeys = []string{match}, []string{mismatch}
	return t
}

func nearOf(p *v1.Pod) *v1.PodAffinity {
	if p.Spec.Affinity == nil {
		p.Spec.Affinity = &v1.Affinity{}
	}
	if p.Spec.Affinity.PodAffinity == nil {
		p.Spec.Affinity.PodAffinity = &v1.PodAffinity{}
	}
	return p.Spec.Affinity.PodAffinity
}

func farOf(p *v1.Pod) *v1.PodAntiAffinity {
	if p.Spec.Affinity == nil {
		p.Spec.Affinity = &v1.Affinity{}
	}
	if p.Spec.Affinity.PodAntiAffinity == nil {
		p.Spec.Affinity.PodAntiAffinity = &v1.PodAntiAffinity{}
	}
	return p.Spec.Affinity.PodAntiAffinity
}

func wantsNear(terms ...v1.PodAffinityTerm) plugintest.PodOption {
	return func(p *v1.Pod) { nearOf(p).RequiredDuringSchedulingIgnoredDuringExecution = terms }
}

func wantsFar(terms ...v1.PodAffinityTerm) plugintest.PodOption {
	return func(p *v1.Pod) { farOf(p).RequiredDuringSchedulingIgnoredDuringExecution = terms }
}

func likesNear(weight int32, t v1.PodAffinityTerm) plugintest.PodOption {
	return func(p *v1.Pod) {
		a := nearOf(p)
		a.PreferredDuringSchedulingIgnoredDuringExecution = append(a.PreferredDuringSchedulingIgnoredDuringExecution, v1.WeightedPodAffinityTerm{Weight: weight, PodAffinityTerm: t})
	}
}

func likesFar(weight int32, t v1.PodAffinityTerm) plugintest.PodOption {
	return func(p *v1.Pod) {
		a := farOf(p)
		a.PreferredDuringSchedulingIgnoredDuringExecution = append(a.PreferredDuringSchedulingIgnoredDuringExecution, v1.WeightedPodAffinityTerm{Weight: weight, PodAffinityTerm: t})
	}
}

func space(name string, pairs ...string) *v1.Namespace {
	return &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: pairsOf(pairs)}}
}

func interPod() *InterPodAffinity {
	return plugintest.Must(NewInterPodAffinity(DefaultInterPodAffinityArgs()))
}

const (
	wrongPlace = "node(s) didn't match pod affinity rules"
	tooClose   = "node(s) didn't match pod anti-affinity rules"
	unwanted   = "node(s) didn't satisfy existing pods anti-affinity rules"
)

// affinityWorld has two zones with two nodes each, and a node without labels. a1 runs the web server of namespace ns,
// b1 the web server of namespace other, which is labelled team=red.
func affinityWorld(more ...any) *plugintest.Cluster {
	w := plugintest.NewCluster().WithNamespaces(space("ns", "team", "blue"), space("other", "team", "red"), space("bare"))
	for _, name := range []string{"a1", "a2", "b1", "b2"} {
		w.With(plugintest.Node(name, plugintest.Labels("host", name, "zone", name[:1])))
	}
	w.With(plugintest.Node("off"))
	return w.With(
		plugintest.Pod("web", wears("app", "web", "tier", "front"), plugintest.OnNode("a1")),
		plugintest.Pod("web-other", plugintest.InNamespace("other"), wears("app", "web"), plugintest.OnNode("b1")),
	).With(more...)
}

// Who may go where: the verdict on every node. Mutants: pod-affinity-any-term, pod-affinity-first-anywhere,
// pod-affinity-first-any-pod, pod-affinity-first-never, pod-affinity-no-key-fits, pod-affinity-asymmetric,
// pod-affinity-all-namespaces, pod-affinity-no-namespace-selector, pod-affinity-empty-selects-none,
// pod-affinity-strict-selector, pod-affinity-anti-first-term, pod-affinity-always-resolvable, pod-affinity-anti-first,
// pod-affinity-terminating-gone.
func TestPodAffinityFilters(t *testing.T) {
	web, zone := podsBy("host", "app", "web"), podsBy("zone", "app", "web")
	everySpace := &metav1.LabelSelector{}
	red := &metav1.LabelSelector{MatchLabels: map[string]string{"team": "red"}}
	exists := func(names string) map[string]string { // node -> why not, for the nodes named
		m := map[string]string{}
		for _, n := range strings.Fields(names) {
			name, why, _ := strings.Cut(n, ":")
			m[name] = map[string]string{"place": wrongPlace, "close": tooClose, "unwanted": unwanted}[why]
		}
		return m
	}
	for name, c := range map[string]struct {
		more []any
		pod  *v1.Pod
		not  string // the nodes that do not fit, with why
	}{
		"no terms, nobody minds":                {pod: plugintest.Pod("p", wears("app", "web"))},
		"near on the same node":                 {pod: plugintest.Pod("p", wantsNear(web)), not: "a2:place b1:place b2:place off:place"},
		"near in the same zone":                 {pod: plugintest.Pod("p", wantsNear(zone)), not: "b1:place b2:place off:place"},
		"all terms hold for the same pods":      {pod: plugintest.Pod("p", wantsNear(zone, podsBy("zone", "tier", "front"))), not: "b1:place b2:place off:place"},
		"one pod for each term is not enough":   {more: []any{plugintest.Pod("db", wears("app", "db"), plugintest.OnNode("a2"))}, pod: plugintest.Pod("p", wantsNear(zone, podsBy("zone", "app", "db"))), not: "a1:place a2:place b1:place b2:place off:place"},
		"terms with different keys":             {pod: plugintest.Pod("p", wantsNear(zone, podsBy("host", "tier", "front"))), not: "a2:place b1:place b2:place off:place"},
		"a key that no node has":                {pod: plugintest.Pod("p", wantsNear(podsBy("rack", "app", "web"))), not: "a1:place a2:place b1:place b2:place off:place"},
		"a pod of another namespace":            {pod: plugintest.Pod("p", plugintest.InNamespace("other"), wantsNear(web)), not: "a1:place a2:place b2:place off:place"},
		"namespaces named":                      {pod: plugintest.Pod("p", wantsNear(ofSpaces(web, "other"))), not: "a1:place a2:place b2:place off:place"},
		"two namespaces named":                  {pod: plugintest.Pod("p", wantsNear(ofSpaces(web, "other", "ns"))), not: "a2:place b2:place off:place"},
		"namespaces selected":                   {pod: plugintest.Pod("p", wantsNear(ofSpacesWith(web, red))), not: "a1:place a2:place b2:place off:place"},
		"namespaces named and selected":         {pod: plugintest.Pod("p", wantsNear(ofSpacesWith(ofSpaces(web, "ns"), red))), not: "a2:place b2:place off:place"},
		"all namespaces":                        {pod: plugintest.Pod("p", wantsNear(ofSpacesWith(web, everySpace))), not: "a2:place b2:place off:place"},
		"no such namespace":                     {pod: plugintest.Pod("p", wantsNear(ofSpacesWith(web, selectWhere("team", metav1.LabelSelectorOpIn, "green")))), not: "a1:place a2:place b1:place b2:place off:place"},
		"no selector means no pods":             {pod: plugintest.Pod("p", wantsNear(v1.PodAffinityTerm{TopologyKey: "zone"})), not: "a1:place a2:place b1:place b2:place off:place"},
		"an empty selector means all pods":      {pod: plugintest.Pod("p", wantsNear(podsBy("zone"))), not: "b1:place b2:place off:place"},
		"a selector with an expression":         {pod: plugintest.Pod("p", wantsNear(podsWhere("zone", "app", metav1.LabelSelectorOpNotIn, "db"))), not: "b1:place b2:place off:place"},
		"matchLabelKeys are the API server's":   {pod: plugintest.Pod("p", wears("app", "db", "tier", "back"), wantsNear(withKeys(zone, "tier", "app"))), not: "b1:place b2:place off:place"},
		"the first of its kind":                 {pod: plugintest.Pod("p", wears("app", "new"), wantsNear(podsBy("zone", "app", "new"))), not: "off:place"},
		"the first, but not of its own kind":    {pod: plugintest.Pod("p", wears("app", "old"), wantsNear(podsBy("zone", "app", "new"))), not: "a1:place a2:place b1:place b2:place off:place"},
		"not the first":                         {pod: plugintest.Pod("p", wears("app", "web"), wantsNear(zone)), not: "b1:place b2:place off:place"},
		"the first with all keys":               {more: []any{plugintest.Node("c", plugintest.Labels("zone", "c"))}, pod: plugintest.Pod("p", wears("app", "new"), wantsNear(podsBy("zone", "app", "new"), podsBy("host", "app", "new"))), not: "c:place off:place"},
		"its kind is only where nothing counts": {more: []any{plugintest.Pod("new", wears("app", "new"), plugintest.OnNode("off"))}, pod: plugintest.Pod("p", wears("app", "new"), wantsNear(podsBy("zone", "app", "new"))), not: "off:place"},
		"its kind is in another namespace":      {pod: plugintest.Pod("p", plugintest.InNamespace("bare"), wears("app", "web"), wantsNear(zone)), not: "off:place"},

		"far on the same node":               {pod: plugintest.Pod("p", wantsFar(web)), not: "a1:close"},
		"far in the same zone":               {pod: plugintest.Pod("p", wantsFar(zone)), not: "a1:close a2:close"},
		"each term for itself":               {pod: plugintest.Pod("p", wantsFar(web, podsBy("zone", "app", "absent"))), not: "a1:close"},
		"any of the terms":                   {pod: plugintest.Pod("p", wantsFar(podsBy("zone", "app", "absent"), ofSpaces(zone, "other"))), not: "b1:close b2:close"},
		"far from a namespace":               {pod: plugintest.Pod("p", wantsFar(ofSpacesWith(web, red))), not: "b1:close"},
		"far from all":                       {pod: plugintest.Pod("p", wantsFar(ofSpacesWith(zone, everySpace))), not: "a1:close a2:close b1:close b2:close"},
		"far by a key that no node has":      {pod: plugintest.Pod("p", wantsFar(podsBy("rack", "app", "web")))},
		"neither near nor far":               {pod: plugintest.Pod("p", wantsNear(podsBy("zone", "app", "db")), wantsFar(zone)), not: "a1:place a2:place b1:place b2:place off:place"},
		"near goes before far":               {pod: plugintest.Pod("p", wantsNear(zone), wantsFar(web)), not: "a1:close b1:place b2:place off:place"},
		"namespaces without labels, far":     {pod: plugintest.Pod("p", wantsFar(ofSpacesWith(web, selectWhere("team", metav1.LabelSelectorOpDoesNotExist))))},
		"namespaces that are not red, far":   {pod: plugintest.Pod("p", wantsFar(ofSpacesWith(web, selectWhere("team", metav1.LabelSelectorOpNotIn, "red")))), not: "a1:close"},
		"a terminating pod is still there":   {more: []any{gone(plugintest.Pod("db", wears("app", "db"), plugintest.OnNode("b2")))}, pod: plugintest.Pod("p", wantsFar(podsBy("zone", "app", "db"))), not: "b1:close b2:close"},
		"a pod on a node that is not there":  {more: []any{plugintest.Pod("db", wears("app", "db"), plugintest.OnNode("lost"))}, pod: plugintest.Pod("p", wantsFar(podsBy("zone", "app", "db")))},
		"first, its kind on a lost node":     {more: []any{plugintest.Pod("new", wears("app", "new"), plugintest.OnNode("lost"))}, pod: plugintest.Pod("p", wears("app", "new"), wantsNear(podsBy("zone", "app", "new"))), not: "off:place"},
		"a pod that repels this one":         {more: []any{plugintest.Pod("loner", wantsFar(web), plugintest.OnNode("b1"))}, pod: plugintest.Pod("p", wears("app", "web")), not: "b1:unwanted"},
		"a pod that repels it in its zone":   {more: []any{plugintest.Pod("loner", wantsFar(zone), plugintest.OnNode("b1"))}, pod: plugintest.Pod("p", wears("app", "web")), not: "b1:unwanted b2:unwanted"},
		"repelled from another namespace":    {more: []any{plugintest.Pod("loner", plugintest.InNamespace("other"), wantsFar(zone), plugintest.OnNode("b1"))}, pod: plugintest.Pod("p", wears("app", "web"))},
		"repelled by namespace":              {more: []any{plugintest.Pod("loner", plugintest.InNamespace("other"), wantsFar(ofSpaces(zone, "ns")), plugintest.OnNode("b1"))}, pod: plugintest.Pod("p", wears("app", "web")), not: "b1:unwanted b2:unwanted"},
		"repelled by labels of a namespace":  {more: []any{plugintest.Pod("loner", wantsFar(ofSpacesWith(zone, red)), plugintest.OnNode("b1"))}, pod: plugintest.Pod("p", plugintest.InNamespace("other"), wears("app", "web")), not: "b1:unwanted b2:unwanted"},
		"not repelled by other labels":       {more: []any{plugintest.Pod("loner", wantsFar(ofSpacesWith(zone, selectWhere("team", metav1.LabelSelectorOpNotIn, "blue"))), plugintest.OnNode("b1"))}, pod: plugintest.Pod("p", wears("app", "web"))},
		"repelled from all namespaces":       {more: []any{plugintest.Pod("loner", wantsFar(ofSpacesWith(zone, everySpace)), plugintest.OnNode("b1"))}, pod: plugintest.Pod("p", plugintest.InNamespace("other"), wears("app", "web")), not: "b1:unwanted b2:unwanted"},
		"repelled in a namespace not known":  {more: []any{plugintest.Pod("loner", wantsFar(ofSpacesWith(zone, selectWhere("team", metav1.LabelSelectorOpDoesNotExist))), plugintest.OnNode("b1"))}, pod: plugintest.Pod("p", plugintest.InNamespace("unknown"), wears("app", "web")), not: "b1:unwanted b2:unwanted"},
		"one of many repelling terms":        {more: []any{plugintest.Pod("loner", wantsFar(podsBy("host", "app", "absent"), zone), plugintest.OnNode("b1"))}, pod: plugintest.Pod("p", wears("app", "web")), not: "b1:unwanted b2:unwanted"},
		"affinity of others repels nobody":   {more: []any{plugintest.Pod("fan", wantsNear(zone), plugintest.OnNode("b1"))}, pod: plugintest.Pod("p", wears("app", "web"))},
		"preferences of others repel nobody": {more: []any{plugintest.Pod("fan", likesFar(100, zone), plugintest.OnNode("b1"))}, pod: plugintest.Pod("p", wears("app", "web"))},
		"own terms go before those of others": {more: []any{plugintest.Pod("loner", wears("app", "web"), wantsFar(zone), plugintest.OnNode("b2"))}, pod: plugintest.Pod("p", wears("app", "web"), wantsFar(web)),
			not: "a1:close b1:unwanted b2:close"},
		"terms of others that cannot be read": {more: []any{plugintest.Pod("odd", wantsFar(zone, podsWhere("zone", "app", "Like")), plugintest.OnNode("b1"))}, pod: plugintest.Pod("p", wears("app", "web"))},
		"others of the same kind of pod":      {more: []any{plugintest.Pod("odd", wantsNear(podsWhere("zone", "app", "Like")), wantsFar(zone), plugintest.OnNode("b1"))}, pod: plugintest.Pod("p", wears("app", "web")), not: "b1:unwanted b2:unwanted"},
	} {
		t.Run(name, func(t *testing.T) {
			w, not := affinityWorld(c.more...), exists(c.not)
			s := w.Store.Snapshot()
			for n := range cluster.NodeIdx(s.Rows()) {
				if s.Node(n) == nil {
					continue
				}
				reasons, unresolvable := w.Reasons(t, interPod(), c.pod, s.NodeName(n))
				var want []string
				if not[s.NodeName(n)] != "" {
					want = []string{not[s.NodeName(n)]}
				}
				if !slices.Equal(reasons, want) || unresolvable != slices.Contains(want, wrongPlace) {
					t.Errorf("%s: %q, unresolvable %v; want %q", s.NodeName(n), reasons, unresolvable, want)
				}
			}
		})
	}
}

func gone(p *v1.Pod) *v1.Pod {
	p.DeletionTimestamp = &metav1.Time{}
	return p
}

// A pod without required terms is not filtered as long as no pod has anti-affinity that matches it.
// Mutants: pod-affinity-never-skips, pod-affinity-asymmetric.
func TestPodAffinitySkipsFilter(t *testing.T) {
	skips := func(w *plugintest.Cluster, p *v1.Pod) bool {
		plan := interPod().PrepareFilter(w.Store.Snapshot(), w.Intake.PendingPod(p))
		return plan.Filter == nil && plan.Reject == "" && plan.Err == nil
	}
	zone := podsBy("zone", "app", "web")
	for name, c := range map[string]struct {
		more []any
		pod  *v1.Pod
		want bool
	}{
		"no terms":                           {pod: plugintest.Pod("p", wears("app", "web")), want: true},
		"preferred terms":                    {pod: plugintest.Pod("p", likesNear(1, zone), likesFar(1, zone)), want: true},
		"affinity":                           {pod: plugintest.Pod("p", wantsNear(zone))},
		"anti-affinity":                      {pod: plugintest.Pod("p", wantsFar(podsBy("rack", "app", "absent")))},
		"repelled":                           {more: []any{plugintest.Pod("loner", wantsFar(zone), plugintest.OnNode("b1"))}, pod: plugintest.Pod("p", wears("app", "web"))},
		"others are repelled":                {more: []any{plugintest.Pod("loner", wantsFar(zone), plugintest.OnNode("b1"))}, pod: plugintest.Pod("p", wears("app", "db")), want: true},
		"repelled by a key that no node has": {more: []any{plugintest.Pod("loner", wantsFar(podsBy("rack", "app", "web")), plugintest.OnNode("b1"))}, pod: plugintest.Pod("p", wears("app", "web")), want: true},
		"repelled from a node without it":    {more: []any{plugintest.Pod("loner", wantsFar(zone), plugintest.OnNode("off"))}, pod: plugintest.Pod("p", wears("app", "web")), want: true},
		"repelled from a node that is lost":  {more: []any{plugintest.Pod("loner", wantsFar(zone), plugintest.OnNode("lost"))}, pod: plugintest.Pod("p", wears("app", "web")), want: true},
	} {
		if got := skips(affinityWorld(c.more...), c.pod); got != c.want {
			t.Errorf("%s: skips %v, want %v", name, got, c.want)
		}
	}
}

// A pod with terms that cannot be read is refused with what is wrong; it fits no node. Mutant:
// pod-affinity-broken-kept.
func TestPodAffinityRefusesBrokenTerms(t *testing.T) {
	bad := podsWhere("zone", "app", "Like", "w*")
	for want, p := range map[string]*v1.Pod{
		`parsing pod: requiredAffinityTerms: "Like" is not a valid label selector operator`:      plugintest.Pod("p", wantsNear(bad)),
		`parsing pod: requiredAntiAffinityTerms: "Like" is not a valid label selector operator`:  plugintest.Pod("p", wantsFar(bad)),
		`parsing pod: preferredAffinityTerms: "Like" is not a valid label selector operator`:     plugintest.Pod("p", likesNear(1, bad)),
		`parsing pod: preferredAntiAffinityTerms: "Like" is not a valid label selector operator`: plugintest.Pod("p", likesFar(1, bad)),
		`parsing pod: [requiredAffinityTerms: "Like" is not a valid label selector operator, preferredAntiAffinityTerms: values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty]`: plugintest.Pod("p",
			wantsNear(bad), likesFar(1, ofSpacesWith(podsBy("zone"), selectWhere("team", metav1.LabelSelectorOpIn)))),
	} {
		w := affinityWorld()
		plan := interPod().PrepareFilter(w.Store.Snapshot(), w.Intake.PendingPod(p))
		if plan.Reject != want || plan.Resolvable || plan.Err != nil {
			t.Errorf("refused with %q, resolvable %v, error %v; want %q", plan.Reject, plan.Resolvable, plan.Err, want)
		}
	}
}

// Pods that are supposed to come or go count on their node only as long as they are supposed to. Mutants:
// pod-affinity-supposed-forgotten, pod-affinity-supposed-one-way, pod-affinity-supposed-no-labels.
func TestPodAffinitySupposes(t *testing.T) {
	zone, web := podsBy("zone", "app", "web"), podsBy("host", "app", "web")
	w := affinityWorld(plugintest.Pod("loner", wantsFar(podsBy("zone", "app", "db")), plugintest.OnNode("a2")))
	s := w.Store.Snapshot()
	check := func(p, other *v1.Pod, on string, want ...string) { // before, while and after other is supposed on a node
		t.Helper()
		f := interPod().PrepareFilter(s, w.Intake.PendingPod(p)).Filter.(plugin.Supposing)
		n, _ := s.Find(on)
		v := s.View(n)
		o := w.Intake.Pod(other)
		o.NodeName = ""
		_, there := find(v.Pods, o.UID)
		suppose := func(there bool) {
			if there {
				v.RemovePod(o.UID)
				f.RemovePod(s, o, v)
			} else {
				v.AddPod(o)
				f.AddPod(s, o, v)
			}
		}
		for i := range want {
			got := "fits"
			if code := f.Plain(s, v); code != plugin.Fit {
				got = f.Reasons(code)[0]
			}
			if got != want[i] {
				t.Errorf("%s, %s on %s, step %d: %s, want %s", p.Name, other.Name, on, i, got, want[i])
			}
			suppose(there)
			there = !there
		}
	}
	db := plugintest.Pod("db", wears("app", "db"))
	front := plugintest.Pod("web", wears("app", "web", "tier", "front"))
	check(plugintest.Pod("p", wantsFar(web)), front, "a1", tooClose, "fits", tooClose)
	check(plugintest.Pod("p", wantsFar(web)), plugintest.Pod("web2", wears("app", "web")), "b1", "fits", tooClose, "fits")
	check(plugintest.Pod("p", wantsNear(zone)), front, "a1", "fits", wrongPlace, "fits")
	check(plugintest.Pod("p", wantsNear(zone)), plugintest.Pod("web2", wears("app", "web")), "b1", wrongPlace, "fits", wrongPlace)
	check(plugintest.Pod("p", wears("app", "db"), wantsNear(podsBy("host", "app", "db"))), db, "b1", "fits", "fits", "fits")
	check(plugintest.Pod("p", wears("app", "web"), wantsNear(zone)), front, "a1", "fits", "fits", "fits")
	check(plugintest.Pod("p", wears("app", "db"), wantsFar(web)), plugintest.Pod("loner", wantsFar(podsBy("zone", "app", "db"))), "a2", unwanted, "fits", unwanted)
	check(plugintest.Pod("p", wears("app", "db"), wantsFar(web)), plugintest.Pod("loner2", wantsFar(podsBy("zone", "app", "db"))), "b2", "fits", unwanted, "fits")
	blue := ofSpacesWith(podsBy("zone", "app", "db"), &metav1.LabelSelector{MatchLabels: map[string]string{"team": "blue"}})
	check(plugintest.Pod("p", wears("app", "db"), wantsFar(web)), plugintest.Pod("loner4", plugintest.InNamespace("other"), wantsFar(blue)), "b2", "fits", unwanted, "fits")
	check(plugintest.Pod("p", wears("app", "db"), wantsFar(web)), plugintest.Pod("loner3", plugintest.InNamespace("other"), wantsFar(podsBy("zone", "app", "db"))), "b2", "fits", "fits", "fits")
}

func find(pods []*cluster.Pod, uid cluster.UID) (int, bool) {
	i := slices.IndexFunc(pods, func(p *cluster.Pod) bool { return p.UID == uid })
	return i, i >= 0
}

// Pods of one template share their PodSpec across namespaces; what was read of one does not serve the other. Mutant:
// pod-affinity-known-by-template.
func TestPodAffinityTellsNamespacesApart(t *testing.T) {
	w, pl := affinityWorld(), interPod()
	for _, c := range []struct{ ns, fits, not string }{{"ns", "a1", "b1"}, {"other", "b1", "a1"}} {
		p := plugintest.Pod("p", plugintest.InNamespace(c.ns), wantsNear(podsBy("host", "app", "web")))
		if reasons, _ := w.Reasons(t, pl, p, c.fits); reasons != nil {
			t.Errorf("%s on %s: %q", c.ns, c.fits, reasons)
		}
		if reasons, _ := w.Reasons(t, pl, p, c.not); !slices.Equal(reasons, []string{wrongPlace}) {
			t.Errorf("%s on %s: %q", c.ns, c.not, reasons)
		}
	}
}

// On many nodes the column form marks domains: those of one key do not stand for those of another, and every key of
// an affinity counts. Mutants: pod-affinity-stale-marks, pod-affinity-column-one-key.
func TestPodAffinityOnManyNodes(t *testing.T) {
	w := plugintest.NewCluster()
	for i := range 3 * fewRows {
		w.With(plugintest.Node(plugintest.NodeName(i), plugintest.Labels("zone", fmt.Sprint(i/2%2), "host", plugintest.NodeName(i))))
	}
	w.With(plugintest.Pod("loner", wantsFar(podsBy("zone", "app", "web")), plugintest.OnNode(plugintest.NodeName(2))),
		plugintest.Pod("loner2", wantsFar(podsBy("host", "app", "web")), plugintest.OnNode(plugintest.NodeName(4))),
		plugintest.Pod("db", wears("app", "db"), plugintest.OnNode(plugintest.NodeName(8))))
	for i := range 12 {
		var want []string
		if i/2%2 == 1 || i == 4 {
			want = []string{unwanted}
		}
		if reasons, _ := w.Reasons(t, interPod(), plugintest.Pod("p", wears("app", "web")), plugintest.NodeName(i)); !slices.Equal(reasons, want) {
			t.Errorf("node %d: %q, want %q", i, reasons, want)
		}
		if want = nil; i != 8 {
			want = []string{wrongPlace}
		}
		both := plugintest.Pod("p", wantsNear(podsBy("zone", "app", "db"), podsBy("host", "app", "db")))
		if reasons, _ := w.Reasons(t, interPod(), both, plugintest.NodeName(i)); !slices.Equal(reasons, want) {
			t.Errorf("node %d, near by zone and host: %q, want %q", i, reasons, want)
		}
	}
}

// The advice names what would have to change near the node.
func TestPodAffinityAdvises(t *testing.T) {
	w := affinityWorld(plugintest.Pod("loner", wantsFar(podsBy("zone", "app", "db")), plugintest.OnNode("b1")))
	s := w.Store.Snapshot()
	for want, c := range map[string]struct {
		pod *v1.Pod
		on  string
	}{
		"label off with zone, by which the pod's affinity counts":                                          {plugintest.Pod("p", wantsNear(podsBy("zone", "app", "web"))), "off"},
		"run a pod that matches app=web and anything where zone=b":                                         {plugintest.Pod("p", wantsNear(podsBy("zone", "app", "web"), podsBy("zone"))), "b1"},
		"move the pods that match tier in (front) away from where host=a1":                                 {plugintest.Pod("p", wantsFar(podsBy("host", "app", "absent"), podsWhere("host", "tier", metav1.LabelSelectorOpIn, "front"))), "a1"},
		"move the pods whose anti-affinity is about this one away from where zone=b":                       {plugintest.Pod("p", wears("app", "db")), "b2"},
		`correct the pod's affinity: requiredAffinityTerms: "Like" is not a valid label selector operator`: {plugintest.Pod("p", wantsNear(podsWhere("zone", "app", "Like"))), "a1"},
		"": {plugintest.Pod("p"), "a1"},
	} {
		pl, rec := interPod(), w.Intake.PendingPod(c.pod)
		pl.PrepareFilter(s, rec)
		n, _ := s.Find(c.on)
		r := record.Remedy{Plugin: pl.Name(), Node: c.on}
		if pl.Advise(s.View(n), rec, &r); r.Do != want {
			t.Errorf("on %s: %q, want %q", c.on, r.Do, want)
		}
	}
}
