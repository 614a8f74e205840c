// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/record"
)

func wears(pairs ...string) podOption { return func(p *v1.Pod) { p.Labels = pairsOf(pairs) } }

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

func wantsNear(terms ...v1.PodAffinityTerm) podOption {
	return func(p *v1.Pod) { nearOf(p).RequiredDuringSchedulingIgnoredDuringExecution = terms }
}

func wantsFar(terms ...v1.PodAffinityTerm) podOption {
	return func(p *v1.Pod) { farOf(p).RequiredDuringSchedulingIgnoredDuringExecution = terms }
}

func likesNear(weight int32, t v1.PodAffinityTerm) podOption {
	return func(p *v1.Pod) {
		a := nearOf(p)
		a.PreferredDuringSchedulingIgnoredDuringExecution = append(a.PreferredDuringSchedulingIgnoredDuringExecution, v1.WeightedPodAffinityTerm{Weight: weight, PodAffinityTerm: t})
	}
}

func likesFar(weight int32, t v1.PodAffinityTerm) podOption {
	return func(p *v1.Pod) {
		a := farOf(p)
		a.PreferredDuringSchedulingIgnoredDuringExecution = append(a.PreferredDuringSchedulingIgnoredDuringExecution, v1.WeightedPodAffinityTerm{Weight: weight, PodAffinityTerm: t})
	}
}

func space(name string, pairs ...string) *v1.Namespace {
	return &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: pairsOf(pairs)}}
}

func (w *world) withSpaces(spaces ...*v1.Namespace) *world {
	for _, ns := range spaces {
		w.store.SetObject(ns)
	}
	return w
}

func interPod() *InterPodAffinity { return must(NewInterPodAffinity(DefaultInterPodAffinityArgs())) }

const (
	wrongPlace = "node(s) didn't match pod affinity rules"
	tooClose   = "node(s) didn't match pod anti-affinity rules"
	unwanted   = "node(s) didn't satisfy existing pods anti-affinity rules"
)

// affinityWorld has two zones with two nodes each, and a node without labels. a1 runs the web server of namespace ns,
// b1 the web server of namespace other, which is labelled team=red.
func affinityWorld(more ...any) *world {
	w := newWorld().withSpaces(space("ns", "team", "blue"), space("other", "team", "red"), space("bare"))
	for _, name := range []string{"a1", "a2", "b1", "b2"} {
		w.with(node(name, label("host", name, "zone", name[:1])))
	}
	w.with(node("off"))
	return w.with(
		pod("web", wears("app", "web", "tier", "front"), onNode("a1")),
		pod("web-other", inNamespace("other"), wears("app", "web"), onNode("b1")),
	).with(more...)
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
		"no terms, nobody minds":                {pod: pod("p", wears("app", "web"))},
		"near on the same node":                 {pod: pod("p", wantsNear(web)), not: "a2:place b1:place b2:place off:place"},
		"near in the same zone":                 {pod: pod("p", wantsNear(zone)), not: "b1:place b2:place off:place"},
		"all terms hold for the same pods":      {pod: pod("p", wantsNear(zone, podsBy("zone", "tier", "front"))), not: "b1:place b2:place off:place"},
		"one pod for each term is not enough":   {more: []any{pod("db", wears("app", "db"), onNode("a2"))}, pod: pod("p", wantsNear(zone, podsBy("zone", "app", "db"))), not: "a1:place a2:place b1:place b2:place off:place"},
		"terms with different keys":             {pod: pod("p", wantsNear(zone, podsBy("host", "tier", "front"))), not: "a2:place b1:place b2:place off:place"},
		"a key that no node has":                {pod: pod("p", wantsNear(podsBy("rack", "app", "web"))), not: "a1:place a2:place b1:place b2:place off:place"},
		"a pod of another namespace":            {pod: pod("p", inNamespace("other"), wantsNear(web)), not: "a1:place a2:place b2:place off:place"},
		"namespaces named":                      {pod: pod("p", wantsNear(ofSpaces(web, "other"))), not: "a1:place a2:place b2:place off:place"},
		"two namespaces named":                  {pod: pod("p", wantsNear(ofSpaces(web, "other", "ns"))), not: "a2:place b2:place off:place"},
		"namespaces selected":                   {pod: pod("p", wantsNear(ofSpacesWith(web, red))), not: "a1:place a2:place b2:place off:place"},
		"namespaces named and selected":         {pod: pod("p", wantsNear(ofSpacesWith(ofSpaces(web, "ns"), red))), not: "a2:place b2:place off:place"},
		"all namespaces":                        {pod: pod("p", wantsNear(ofSpacesWith(web, everySpace))), not: "a2:place b2:place off:place"},
		"no such namespace":                     {pod: pod("p", wantsNear(ofSpacesWith(web, selectWhere("team", metav1.LabelSelectorOpIn, "green")))), not: "a1:place a2:place b1:place b2:place off:place"},
		"no selector means no pods":             {pod: pod("p", wantsNear(v1.PodAffinityTerm{TopologyKey: "zone"})), not: "a1:place a2:place b1:place b2:place off:place"},
		"an empty selector means all pods":      {pod: pod("p", wantsNear(podsBy("zone"))), not: "b1:place b2:place off:place"},
		"a selector with an expression":         {pod: pod("p", wantsNear(podsWhere("zone", "app", metav1.LabelSelectorOpNotIn, "db"))), not: "b1:place b2:place off:place"},
		"matchLabelKeys are the API server's":   {pod: pod("p", wears("app", "db", "tier", "back"), wantsNear(withKeys(zone, "tier", "app"))), not: "b1:place b2:place off:place"},
		"the first of its kind":                 {pod: pod("p", wears("app", "new"), wantsNear(podsBy("zone", "app", "new"))), not: "off:place"},
		"the first, but not of its own kind":    {pod: pod("p", wears("app", "old"), wantsNear(podsBy("zone", "app", "new"))), not: "a1:place a2:place b1:place b2:place off:place"},
		"not the first":                         {pod: pod("p", wears("app", "web"), wantsNear(zone)), not: "b1:place b2:place off:place"},
		"the first with all keys":               {more: []any{node("c", label("zone", "c"))}, pod: pod("p", wears("app", "new"), wantsNear(podsBy("zone", "app", "new"), podsBy("host", "app", "new"))), not: "c:place off:place"},
		"its kind is only where nothing counts": {more: []any{pod("new", wears("app", "new"), onNode("off"))}, pod: pod("p", wears("app", "new"), wantsNear(podsBy("zone", "app", "new"))), not: "off:place"},
		"its kind is in another namespace":      {pod: pod("p", inNamespace("bare"), wears("app", "web"), wantsNear(zone)), not: "off:place"},

		"far on the same node":               {pod: pod("p", wantsFar(web)), not: "a1:close"},
		"far in the same zone":               {pod: pod("p", wantsFar(zone)), not: "a1:close a2:close"},
		"each term for itself":               {pod: pod("p", wantsFar(web, podsBy("zone", "app", "absent"))), not: "a1:close"},
		"any of the terms":                   {pod: pod("p", wantsFar(podsBy("zone", "app", "absent"), ofSpaces(zone, "other"))), not: "b1:close b2:close"},
		"far from a namespace":               {pod: pod("p", wantsFar(ofSpacesWith(web, red))), not: "b1:close"},
		"far from all":                       {pod: pod("p", wantsFar(ofSpacesWith(zone, everySpace))), not: "a1:close a2:close b1:close b2:close"},
		"far by a key that no node has":      {pod: pod("p", wantsFar(podsBy("rack", "app", "web")))},
		"neither near nor far":               {pod: pod("p", wantsNear(podsBy("zone", "app", "db")), wantsFar(zone)), not: "a1:place a2:place b1:place b2:place off:place"},
		"near goes before far":               {pod: pod("p", wantsNear(zone), wantsFar(web)), not: "a1:close b1:place b2:place off:place"},
		"namespaces without labels, far":     {pod: pod("p", wantsFar(ofSpacesWith(web, selectWhere("team", metav1.LabelSelectorOpDoesNotExist)))), not: "a1:close b1:close"},
		"namespaces that are not red, far":   {pod: pod("p", wantsFar(ofSpacesWith(web, selectWhere("team", metav1.LabelSelectorOpNotIn, "red")))), not: "a1:close b1:close"},
		"a terminating pod is still there":   {more: []any{gone(pod("db", wears("app", "db"), onNode("b2")))}, pod: pod("p", wantsFar(podsBy("zone", "app", "db"))), not: "b1:close b2:close"},
		"a pod on a node that is not there":  {more: []any{pod("db", wears("app", "db"), onNode("lost"))}, pod: pod("p", wantsFar(podsBy("zone", "app", "db")))},
		"first, its kind on a lost node":     {more: []any{pod("new", wears("app", "new"), onNode("lost"))}, pod: pod("p", wears("app", "new"), wantsNear(podsBy("zone", "app", "new"))), not: "off:place"},
		"a pod that repels this one":         {more: []any{pod("loner", wantsFar(web), onNode("b1"))}, pod: pod("p", wears("app", "web")), not: "b1:unwanted"},
		"a pod that repels it in its zone":   {more: []any{pod("loner", wantsFar(zone), onNode("b1"))}, pod: pod("p", wears("app", "web")), not: "b1:unwanted b2:unwanted"},
		"repelled from another namespace":    {more: []any{pod("loner", inNamespace("other"), wantsFar(zone), onNode("b1"))}, pod: pod("p", wears("app", "web"))},
		"repelled by namespace":              {more: []any{pod("loner", inNamespace("other"), wantsFar(ofSpaces(zone, "ns")), onNode("b1"))}, pod: pod("p", wears("app", "web")), not: "b1:unwanted b2:unwanted"},
		"repelled by labels of a namespace":  {more: []any{pod("loner", wantsFar(ofSpacesWith(zone, red)), onNode("b1"))}, pod: pod("p", inNamespace("other"), wears("app", "web")), not: "b1:unwanted b2:unwanted"},
		"not repelled by other labels":       {more: []any{pod("loner", wantsFar(ofSpacesWith(zone, selectWhere("team", metav1.LabelSelectorOpNotIn, "blue"))), onNode("b1"))}, pod: pod("p", wears("app", "web"))},
		"repelled from all namespaces":       {more: []any{pod("loner", wantsFar(ofSpacesWith(zone, everySpace)), onNode("b1"))}, pod: pod("p", inNamespace("other"), wears("app", "web")), not: "b1:unwanted b2:unwanted"},
		"repelled in a namespace not known":  {more: []any{pod("loner", wantsFar(ofSpacesWith(zone, selectWhere("team", metav1.LabelSelectorOpDoesNotExist))), onNode("b1"))}, pod: pod("p", inNamespace("unknown"), wears("app", "web")), not: "b1:unwanted b2:unwanted"},
		"one of many repelling terms":        {more: []any{pod("loner", wantsFar(podsBy("host", "app", "absent"), zone), onNode("b1"))}, pod: pod("p", wears("app", "web")), not: "b1:unwanted b2:unwanted"},
		"affinity of others repels nobody":   {more: []any{pod("fan", wantsNear(zone), onNode("b1"))}, pod: pod("p", wears("app", "web"))},
		"preferences of others repel nobody": {more: []any{pod("fan", likesFar(100, zone), onNode("b1"))}, pod: pod("p", wears("app", "web"))},
		"own terms go before those of others": {more: []any{pod("loner", wears("app", "web"), wantsFar(zone), onNode("b2"))}, pod: pod("p", wears("app", "web"), wantsFar(web)),
			not: "a1:close b1:unwanted b2:close"},
		"terms of others that cannot be read": {more: []any{pod("odd", wantsFar(zone, podsWhere("zone", "app", "Like")), onNode("b1"))}, pod: pod("p", wears("app", "web"))},
		"others of the same kind of pod":      {more: []any{pod("odd", wantsNear(podsWhere("zone", "app", "Like")), wantsFar(zone), onNode("b1"))}, pod: pod("p", wears("app", "web")), not: "b1:unwanted b2:unwanted"},
	} {
		t.Run(name, func(t *testing.T) {
			w, not := affinityWorld(c.more...), exists(c.not)
			s := w.store.Snapshot()
			for n := range cluster.NodeIdx(s.Rows()) {
				if s.Node(n) == nil {
					continue
				}
				reasons, unresolvable := w.says(t, interPod(), c.pod, s.NodeName(n))
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

// A pod without required terms is not filtered as long as nobody with anti-affinity is about it.
// Mutants: pod-affinity-never-skips, pod-affinity-asymmetric.
func TestPodAffinitySkipsFilter(t *testing.T) {
	skips := func(w *world, p *v1.Pod) bool {
		plan := interPod().PrepareFilter(w.store.Snapshot(), w.intake.PendingPod(p))
		return plan.Filter == nil && plan.Reject == "" && plan.Err == nil
	}
	zone := podsBy("zone", "app", "web")
	for name, c := range map[string]struct {
		more []any
		pod  *v1.Pod
		want bool
	}{
		"no terms":                           {pod: pod("p", wears("app", "web")), want: true},
		"preferred terms":                    {pod: pod("p", likesNear(1, zone), likesFar(1, zone)), want: true},
		"affinity":                           {pod: pod("p", wantsNear(zone))},
		"anti-affinity":                      {pod: pod("p", wantsFar(podsBy("rack", "app", "absent")))},
		"repelled":                           {more: []any{pod("loner", wantsFar(zone), onNode("b1"))}, pod: pod("p", wears("app", "web"))},
		"others are repelled":                {more: []any{pod("loner", wantsFar(zone), onNode("b1"))}, pod: pod("p", wears("app", "db")), want: true},
		"repelled by a key that no node has": {more: []any{pod("loner", wantsFar(podsBy("rack", "app", "web")), onNode("b1"))}, pod: pod("p", wears("app", "web")), want: true},
		"repelled from a node without it":    {more: []any{pod("loner", wantsFar(zone), onNode("off"))}, pod: pod("p", wears("app", "web")), want: true},
		"repelled from a node that is lost":  {more: []any{pod("loner", wantsFar(zone), onNode("lost"))}, pod: pod("p", wears("app", "web")), want: true},
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
		`parsing pod: requiredAffinityTerms: "Like" is not a valid label selector operator`:      pod("p", wantsNear(bad)),
		`parsing pod: requiredAntiAffinityTerms: "Like" is not a valid label selector operator`:  pod("p", wantsFar(bad)),
		`parsing pod: preferredAffinityTerms: "Like" is not a valid label selector operator`:     pod("p", likesNear(1, bad)),
		`parsing pod: preferredAntiAffinityTerms: "Like" is not a valid label selector operator`: pod("p", likesFar(1, bad)),
		`parsing pod: [requiredAffinityTerms: "Like" is not a valid label selector operator, preferredAntiAffinityTerms: values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty]`: pod("p",
			wantsNear(bad), likesFar(1, ofSpacesWith(podsBy("zone"), selectWhere("team", metav1.LabelSelectorOpIn)))),
	} {
		w := affinityWorld()
		plan := interPod().PrepareFilter(w.store.Snapshot(), w.intake.PendingPod(p))
		if plan.Reject != want || plan.Resolvable || plan.Err != nil {
			t.Errorf("refused with %q, resolvable %v, error %v; want %q", plan.Reject, plan.Resolvable, plan.Err, want)
		}
	}
}

// Pods that are supposed to come or go count on their node only as long as they are supposed to. Mutants:
// pod-affinity-supposed-forgotten, pod-affinity-supposed-one-way, pod-affinity-supposed-no-labels.
func TestPodAffinitySupposes(t *testing.T) {
	zone, web := podsBy("zone", "app", "web"), podsBy("host", "app", "web")
	w := affinityWorld(pod("loner", wantsFar(podsBy("zone", "app", "db")), onNode("a2")))
	s := w.store.Snapshot()
	check := func(p, other *v1.Pod, on string, want ...string) { // before, while and after other is supposed on a node
		t.Helper()
		f := interPod().PrepareFilter(s, w.intake.PendingPod(p)).Filter.(Supposing)
		n, _ := s.Find(on)
		v := s.View(n)
		o := w.intake.Pod(other)
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
			if code := f.Plain(s, v); code != Fit {
				got = f.Reasons(code)[0]
			}
			if got != want[i] {
				t.Errorf("%s, %s on %s, step %d: %s, want %s", p.Name, other.Name, on, i, got, want[i])
			}
			suppose(there)
			there = !there
		}
	}
	db := pod("db", wears("app", "db"))
	front := pod("web", wears("app", "web", "tier", "front"))
	check(pod("p", wantsFar(web)), front, "a1", tooClose, "fits", tooClose)
	check(pod("p", wantsFar(web)), pod("web2", wears("app", "web")), "b1", "fits", tooClose, "fits")
	check(pod("p", wantsNear(zone)), front, "a1", "fits", wrongPlace, "fits")
	check(pod("p", wantsNear(zone)), pod("web2", wears("app", "web")), "b1", wrongPlace, "fits", wrongPlace)
	check(pod("p", wears("app", "db"), wantsNear(podsBy("host", "app", "db"))), db, "b1", "fits", "fits", "fits")
	check(pod("p", wears("app", "web"), wantsNear(zone)), front, "a1", "fits", "fits", "fits")
	check(pod("p", wears("app", "db"), wantsFar(web)), pod("loner", wantsFar(podsBy("zone", "app", "db"))), "a2", unwanted, "fits", unwanted)
	check(pod("p", wears("app", "db"), wantsFar(web)), pod("loner2", wantsFar(podsBy("zone", "app", "db"))), "b2", "fits", unwanted, "fits")
	blue := ofSpacesWith(podsBy("zone", "app", "db"), &metav1.LabelSelector{MatchLabels: map[string]string{"team": "blue"}})
	check(pod("p", wears("app", "db"), wantsFar(web)), pod("loner4", inNamespace("other"), wantsFar(blue)), "b2", "fits", unwanted, "fits")
	check(pod("p", wears("app", "db"), wantsFar(web)), pod("loner3", inNamespace("other"), wantsFar(podsBy("zone", "app", "db"))), "b2", "fits", "fits", "fits")
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
		p := pod("p", inNamespace(c.ns), wantsNear(podsBy("host", "app", "web")))
		if reasons, _ := w.says(t, pl, p, c.fits); reasons != nil {
			t.Errorf("%s on %s: %q", c.ns, c.fits, reasons)
		}
		if reasons, _ := w.says(t, pl, p, c.not); !slices.Equal(reasons, []string{wrongPlace}) {
			t.Errorf("%s on %s: %q", c.ns, c.not, reasons)
		}
	}
}

// On many nodes the column form marks domains: those of one key do not stand for those of another, and every key of
// an affinity counts. Mutants: pod-affinity-stale-marks, pod-affinity-column-one-key.
func TestPodAffinityOnManyNodes(t *testing.T) {
	w := newWorld()
	for i := range 3 * fewRows {
		w.with(node(nodeName(i), label("zone", fmt.Sprint(i/2%2), "host", nodeName(i))))
	}
	w.with(pod("loner", wantsFar(podsBy("zone", "app", "web")), onNode(nodeName(2))),
		pod("loner2", wantsFar(podsBy("host", "app", "web")), onNode(nodeName(4))),
		pod("db", wears("app", "db"), onNode(nodeName(8))))
	for i := range 12 {
		var want []string
		if i/2%2 == 1 || i == 4 {
			want = []string{unwanted}
		}
		if reasons, _ := w.says(t, interPod(), pod("p", wears("app", "web")), nodeName(i)); !slices.Equal(reasons, want) {
			t.Errorf("node %d: %q, want %q", i, reasons, want)
		}
		if want = nil; i != 8 {
			want = []string{wrongPlace}
		}
		both := pod("p", wantsNear(podsBy("zone", "app", "db"), podsBy("host", "app", "db")))
		if reasons, _ := w.says(t, interPod(), both, nodeName(i)); !slices.Equal(reasons, want) {
			t.Errorf("node %d, near by zone and host: %q, want %q", i, reasons, want)
		}
	}
}

// The advice names what would have to change near the node.
func TestPodAffinityAdvises(t *testing.T) {
	w := affinityWorld(pod("loner", wantsFar(podsBy("zone", "app", "db")), onNode("b1")))
	s := w.store.Snapshot()
	for want, c := range map[string]struct {
		pod *v1.Pod
		on  string
	}{
		"label off with zone, by which the pod's affinity counts":                                          {pod("p", wantsNear(podsBy("zone", "app", "web"))), "off"},
		"run a pod that matches app=web and anything where zone=b":                                         {pod("p", wantsNear(podsBy("zone", "app", "web"), podsBy("zone"))), "b1"},
		"move the pods that match tier in (front) away from where host=a1":                                 {pod("p", wantsFar(podsBy("host", "app", "absent"), podsWhere("host", "tier", metav1.LabelSelectorOpIn, "front"))), "a1"},
		"move the pods whose anti-affinity is about this one away from where zone=b":                       {pod("p", wears("app", "db")), "b2"},
		`correct the pod's affinity: requiredAffinityTerms: "Like" is not a valid label selector operator`: {pod("p", wantsNear(podsWhere("zone", "app", "Like"))), "a1"},
		"": {pod("p"), "a1"},
	} {
		pl, rec := interPod(), w.intake.PendingPod(c.pod)
		pl.PrepareFilter(s, rec)
		n, _ := s.Find(c.on)
		r := record.Remedy{Plugin: pl.Name(), Node: c.on}
		if pl.Advise(s.View(n), rec, &r); r.Do != want {
			t.Errorf("on %s: %q, want %q", c.on, r.Do, want)
		}
	}
}
