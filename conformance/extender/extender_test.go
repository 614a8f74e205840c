// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	configv1 "k8s.io/kube-scheduler/config/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/metrics"

	"github.com/kumiki-scheduler/kumiki/conformance/sampling"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/host/extender"
	"github.com/kumiki-scheduler/kumiki/record"
)

// What a run of the tests compares if the environment does not say otherwise.
const (
	defaultCases = 1500
	defaultSeed  = 20261121
)

const resource = "example.com/a"

var nodeNames = []string{"n0", "n1", "n2", "n3", "n4"}

// world is what one case is about: extenders, what they answer, and a pod.
type world struct {
	configs []configv1.Extender
	answers map[string]string // path -> answer; a number is a code
	pod     *v1.Pod
}

func (w *world) Pod(record.PodRef) *v1.Pod { return w.pod }
func (w *world) Node(name string) *v1.Node {
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func (w *world) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	answer := w.answers[r.URL.Path]
	if answer == "503" {
		rw.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	if strings.HasSuffix(r.URL.Path, "/filter") {
		answer = honest(answer, r)
	}
	fmt.Fprint(rw, answer)
}

// honest takes out of an answer what kumiki treats otherwise than upstream on purpose: whole nodes that were not asked
// about, and reasons for nodes that were not asked about.
func honest(answer string, r *http.Request) string {
	var args extenderv1.ExtenderArgs
	var result extenderv1.ExtenderFilterResult
	answer, more := strings.CutSuffix(answer, " more")
	if json.NewDecoder(r.Body).Decode(&args) != nil || json.Unmarshal([]byte(answer), &result) != nil || answer == "null" {
		return answer
	}
	asked := func(name string) bool {
		if args.NodeNames != nil {
			return slices.Contains(*args.NodeNames, name)
		}
		return slices.ContainsFunc(args.Nodes.Items, func(n v1.Node) bool { return n.Name == name })
	}
	if result.Nodes != nil {
		result.Nodes.Items = slices.DeleteFunc(result.Nodes.Items, func(n v1.Node) bool { return !asked(n.Name) })
	}
	if result.NodeNames != nil {
		*result.NodeNames = slices.DeleteFunc(*result.NodeNames, func(name string) bool { return !asked(name) && name != "unknown" })
	}
	maps.DeleteFunc(result.FailedNodes, func(name, _ string) bool { return !asked(name) })
	maps.DeleteFunc(result.FailedAndUnresolvableNodes, func(name, _ string) bool { return !asked(name) })
	good, err := json.Marshal(result)
	if err != nil {
		panic(err)
	}
	if more {
		return string(good) + " more"
	}
	return string(good)
}

func chance(r *rand.Rand, percent int) bool { return r.IntN(100) < percent }

func draw(r *rand.Rand, url string) *world {
	w := &world{answers: map[string]string{}, pod: &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "uid"}}}
	if chance(r, 60) {
		list := v1.ResourceList{resource: apiresource.MustParse("1")}
		w.pod.Spec.Containers = []v1.Container{{Resources: v1.ResourceRequirements{Requests: list, Limits: list}}}
		if chance(r, 30) {
			w.pod.Spec.InitContainers, w.pod.Spec.Containers = w.pod.Spec.Containers, nil
		}
	}
	binds := false
	for i := range 1 + r.IntN(3) {
		c := configv1.Extender{URLPrefix: fmt.Sprintf("%s/e%d", url, i), NodeCacheCapable: chance(r, 60), Ignorable: chance(r, 40),
			HTTPTimeout: metav1.Duration{Duration: time.Minute}}
		if chance(r, 20) {
			c.URLPrefix += "/"
		}
		path := fmt.Sprintf("/e%d/", i)
		if chance(r, 80) {
			c.FilterVerb, w.answers[path+"filter"] = "filter", drawFiltered(r, c.NodeCacheCapable)
		}
		if chance(r, 80) {
			c.PrioritizeVerb, c.Weight, w.answers[path+"rank"] = "rank", 1+r.Int64N(9), drawRanks(r)
		}
		if !binds && chance(r, 50) {
			binds, c.BindVerb = true, "bind"
			w.answers[path+"bind"] = drawBroken(r, extenderv1.ExtenderBindingResult{Error: []string{"", "", "not today"}[r.IntN(3)]})
		}
		if chance(r, 40) {
			c.ManagedResources = []configv1.ExtenderManagedResource{{Name: resource}}
		}
		w.configs = append(w.configs, c)
	}
	return w
}

// drawFiltered returns an answer with some of the nodes, with reasons, and sometimes with an unknown node.
func drawFiltered(r *rand.Rand, caches bool) string {
	var result extenderv1.ExtenderFilterResult
	var kept []string
	for _, name := range nodeNames {
		if chance(r, 70) {
			kept = append(kept, name)
		}
		if chance(r, 30) {
			result.FailedNodes = with(result.FailedNodes, name, []string{"busy", "full", ""}[r.IntN(3)])
		}
		if chance(r, 20) {
			result.FailedAndUnresolvableNodes = with(result.FailedAndUnresolvableNodes, name, []string{"broken", ""}[r.IntN(2)])
		}
	}
	r.Shuffle(len(kept), func(i, j int) { kept[i], kept[j] = kept[j], kept[i] })
	switch {
	case caches && chance(r, 90):
		if chance(r, 5) {
			kept = append(kept, "unknown")
		}
		result.NodeNames = &kept
	case !caches && chance(r, 95):
		result.Nodes = &v1.NodeList{}
		for _, name := range kept {
			result.Nodes.Items = append(result.Nodes.Items, v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
	}
	if chance(r, 5) {
		result.Error = "out of order"
	}
	return drawBroken(r, result)
}

func with(m extenderv1.FailedNodesMap, name, reason string) extenderv1.FailedNodesMap {
	if m == nil {
		m = extenderv1.FailedNodesMap{}
	}
	m[name] = reason
	return m
}

func drawRanks(r *rand.Rand) string {
	var list extenderv1.HostPriorityList
	for range r.IntN(8) {
		list = append(list, extenderv1.HostPriority{Host: append(nodeNames, "unknown")[r.IntN(len(nodeNames)+1)], Score: r.Int64N(14) - 2})
	}
	return drawBroken(r, list)
}

// drawBroken encodes an answer, at times badly.
func drawBroken(r *rand.Rand, answer any) string {
	good, err := json.Marshal(answer)
	if err != nil {
		panic(err)
	}
	switch r.IntN(40) {
	case 0:
		return "503"
	case 1:
		return string(good[:len(good)-1])
	case 2:
		return `"text"`
	case 3:
		return ""
	case 4:
		return string(good) + " more"
	case 5:
		return "null"
	}
	return string(good)
}

// upstream makes upstream's extenders of a configuration, in the order in which upstream asks them.
func upstream(t *testing.T, configs []configv1.Extender) []fwk.Extender {
	var first, last []fwk.Extender
	for _, c := range configs {
		u := &schedulerapi.Extender{URLPrefix: c.URLPrefix, FilterVerb: c.FilterVerb, PrioritizeVerb: c.PrioritizeVerb, BindVerb: c.BindVerb,
			Weight: c.Weight, NodeCacheCapable: c.NodeCacheCapable, Ignorable: c.Ignorable, HTTPTimeout: c.HTTPTimeout}
		for _, m := range c.ManagedResources {
			u.ManagedResources = append(u.ManagedResources, schedulerapi.ExtenderManagedResource{Name: m.Name})
		}
		e, err := scheduler.NewHTTPExtender(u)
		if err != nil {
			t.Fatal(err)
		}
		if c.Ignorable {
			last = append(last, e)
		} else {
			first = append(first, e)
		}
	}
	return append(first, last...)
}

// TestExtendersLikeUpstream checks that both call the same servers about the same nodes with the same result: which
// nodes are left, why the others are not, what is added to the totals, whether a bind succeeds, and the exact text of
// every error.
func TestExtendersLikeUpstream(t *testing.T) {
	var current *world
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { current.ServeHTTP(w, r) }))
	defer server.Close()
	metrics.Register()
	ctx, logger := context.Background(), klog.Background()
	seed, cases := sampling.SeedOr(t, defaultSeed), sampling.Cases(t, defaultCases)
	seen := map[string]int{} // what happened -> how often
	for i := range cases {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		current = draw(r, server.URL)
		up := upstream(t, current.configs)
		ours, err := extender.New(ctx, current.configs, current, nil)
		if err != nil {
			t.Fatal(err)
		}
		pod := convert.NewIntake().Pod(current.pod)
		var infos []fwk.NodeInfo
		for _, name := range nodeNames {
			info := framework.NewNodeInfo()
			info.SetNode(current.Node(name))
			infos = append(infos, info)
		}
		for _, got := range []struct{ what, up, ours string }{
			{"filter", upFilter(ctx, up, current.pod, infos), ourFilter(ours, pod)},
			{"rank", upRank(ctx, t, up, current.pod, infos), ourRank(ours, pod)},
			{"bind", upBind(logger, up, current.pod), ourBind(ctx, ours, pod)},
		} {
			if got.up != got.ours {
				t.Fatalf("case %d of seed %d, %s\nupstream %s\nkumiki   %s\nextenders %+v\nanswers %+v", i, seed, got.what, got.up, got.ours, current.configs, current.answers)
			}
			seen[got.what+" "+strings.SplitN(got.up, ":", 2)[0]]++
		}
		server.CloseClientConnections() // each case has clients of its own
	}
	t.Logf("%d cases of seed %d: %v", cases, seed, seen)
	for _, must := range []string{"filter error", "filter left", "bind error", "bind bound", "bind not by an extender"} {
		if seen[must] < 20 {
			t.Errorf("%q happened %d times: the cases say too little", must, seen[must])
		}
	}
}

func upFilter(ctx context.Context, up []fwk.Extender, pod *v1.Pod, infos []fwk.NodeInfo) string {
	statuses := framework.NewDefaultNodeToStatus()
	left, err := findNodesThatPassExtenders(ctx, up, pod, infos, statuses)
	if err != nil {
		return "error: " + err.Error()
	}
	passed := map[string]bool{} // node -> left
	for _, info := range left {
		passed[info.Node().Name] = true
	}
	var words []string
	for _, name := range nodeNames {
		status := statuses.Get(name)
		switch {
		case passed[name]:
			words = append(words, name)
		case status.Code() == fwk.UnschedulableAndUnresolvable:
			words = append(words, name+" no, never: "+strings.Join(status.Reasons(), ","))
		default:
			words = append(words, name+" no: "+strings.Join(status.Reasons(), ","))
		}
	}
	return "left: " + strings.Join(words, "; ")
}

func ourFilter(x *extender.Extenders, pod *cluster.Pod) string {
	rejected, err := x.Filter(pod, nodeNames)
	if err != nil {
		return "error: " + err.Error()
	}
	var words []string
	for _, name := range nodeNames {
		why, no := rejected[name]
		switch {
		case !no:
			words = append(words, name)
		case why.Unresolvable:
			words = append(words, name+" no, never: "+why.Reason)
		default:
			words = append(words, name+" no: "+why.Reason)
		}
	}
	return "left: " + strings.Join(words, "; ")
}

func upRank(ctx context.Context, t *testing.T, up []fwk.Extender, pod *v1.Pod, infos []fwk.NodeInfo) string {
	scores, err := prioritizeNodes(ctx, up, noScores{}, framework.NewCycleState(), pod, infos)
	if err != nil {
		t.Fatal(err)
	}
	sort.Slice(scores, func(i, j int) bool { return scores[i].Name < scores[j].Name })
	var totals []int64
	for _, s := range scores {
		totals = append(totals, s.TotalScore)
	}
	return fmt.Sprint("totals: ", totals)
}

func ourRank(x *extender.Extenders, pod *cluster.Pod) string {
	totals := make([]int64, len(nodeNames))
	for _, s := range x.Score(pod, slices.Clone(nodeNames)) {
		for i, v := range s.Added {
			totals[i] += v
		}
	}
	return fmt.Sprint("totals: ", totals)
}

func upBind(logger klog.Logger, up []fwk.Extender, pod *v1.Pod) string {
	bound, err := extendersBinding(&scheduler.Scheduler{Extenders: up}, logger, pod, "n0")
	switch {
	case !bound:
		return "not by an extender"
	case err != nil:
		return "error: " + err.Error()
	}
	return "bound"
}

func ourBind(ctx context.Context, x *extender.Extenders, pod *cluster.Pod) string {
	if x.Binder(pod) == "" {
		return "not by an extender"
	}
	switch err := x.Bind(ctx, pod.Ref(), "n0"); {
	case errors.Is(err, extender.ErrNotBound):
		return "not by an extender"
	case err != nil:
		return "error: " + err.Error()
	}
	return "bound"
}
