// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	configv1 "k8s.io/kube-scheduler/config/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/record"
)

// fixture is a few nodes and pods, and what calls were ignored.
type fixture struct {
	t     *testing.T
	pods  map[string]*v1.Pod  // UID -> pod
	nodes map[string]*v1.Node // name -> node

	mu      sync.Mutex
	ignored []Ignored
}

func (f *fixture) Pod(ref record.PodRef) *v1.Pod { return f.pods[ref.UID] }
func (f *fixture) Node(name string) *v1.Node     { return f.nodes[name] }

func newFixture(t *testing.T) *fixture {
	f := &fixture{t: t, pods: map[string]*v1.Pod{}, nodes: map[string]*v1.Node{}}
	for _, name := range []string{"a", "b", "c"} {
		f.nodes[name] = &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name,
			Labels: map[string]string{"zone": "z-" + name}}}
	}
	return f
}

// pod makes a pod that asks for these extended resources.
func (f *fixture) pod(name string, resources ...string) *cluster.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name),
		Annotations: map[string]string{"kept": "yes"}}}
	list := v1.ResourceList{}
	for _, r := range resources {
		list[v1.ResourceName(r)] = apiresource.MustParse("1")
	}
	p.Spec.Containers = []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{Requests: list}}}
	f.pods[string(p.UID)] = p
	return convert.NewIntake().Pod(p)
}

func (f *fixture) with(configs ...configv1.Extender) *Extenders {
	f.t.Helper()
	x, err := New(context.Background(), configs, f, func(i Ignored) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.ignored = append(f.ignored, i)
	})
	if err != nil {
		f.t.Fatalf("making extenders: %v", err)
	}
	return x
}

// server is an extender that answers as answer does, given the verb and the body of the question.
func (f *fixture) server(answer func(verb string, body []byte) any) *httptest.Server {
	s := httptest.NewServer(f.handler(answer))
	f.t.Cleanup(s.Close)
	return s
}

func (f *fixture) handler(answer func(verb string, body []byte) any) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body json.RawMessage
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			f.t.Errorf("the question is no JSON: %v", err)
		}
		if r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
			f.t.Errorf("%s of %s, want POST of application/json", r.Method, r.Header.Get("Content-Type"))
		}
		switch says := answer(strings.TrimPrefix(r.URL.Path, "/"), body).(type) {
		case int:
			w.WriteHeader(says)
		case string:
			fmt.Fprint(w, says)
		default:
			if err := json.NewEncoder(w).Encode(says); err != nil {
				f.t.Errorf("encoding the answer: %v", err)
			}
		}
	})
}

// filters is the configuration of an extender that filters and caches nodes itself.
func filters(s *httptest.Server) configv1.Extender {
	return configv1.Extender{URLPrefix: s.URL, FilterVerb: "filter", NodeCacheCapable: true}
}

func names(list ...string) *[]string { return &list }

func whole(list ...string) *v1.NodeList {
	l := &v1.NodeList{}
	for _, name := range list {
		l.Items = append(l.Items, v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return l
}

// tell words what an extender rejects: node: reason, ! in front when evictions cannot help.
func tell(rejected map[string]place.ForeignRejection) string {
	var words []string
	for _, node := range slices.Sorted(maps.Keys(rejected)) {
		why := rejected[node]
		mark := ""
		if why.Unresolvable {
			mark = "!"
		}
		words = append(words, fmt.Sprintf("%s: %s%s", node, mark, why.Reason))
	}
	return strings.Join(words, ", ")
}

type result = extenderv1.ExtenderFilterResult
type failed = extenderv1.FailedNodesMap

// What one extender's answer means for the nodes. Faults this catches: taking a node that was not asked about; taking
// all nodes where the answer names none; FailedNodes over FailedAndUnresolvableNodes.
func TestFilterReadsTheAnswer(t *testing.T) {
	for _, scenario := range []struct {
		name   string
		caches bool
		answer any
		want   string // what is rejected, or the error
	}{
		{"it keeps all", true, result{NodeNames: names("a", "b", "c")}, ""},
		{"in another order, one of them twice", true, result{NodeNames: names("c", "a", "b", "a")}, ""},
		{"it keeps one and says nothing", true, result{NodeNames: names("b")}, "a: !, c: !"},
		{"it keeps none", true, result{NodeNames: names()}, "a: !, b: !, c: !"},
		{"it says nothing at all", true, result{}, "a: !, b: !, c: !"},
		{"it says why", true, result{NodeNames: names("b"), FailedNodes: failed{"a": "busy"},
			FailedAndUnresolvableNodes: failed{"c": "broken"}}, "a: busy, c: !broken"},
		{"both ways", true, result{NodeNames: names("b", "c"), FailedNodes: failed{"a": "busy"},
			FailedAndUnresolvableNodes: failed{"a": "broken"}}, "a: !broken"},
		{"a node that it keeps has failed", true, result{NodeNames: names("a", "b", "c"),
			FailedNodes: failed{"a": "busy"}}, ""},
		{"a node that was not in the request has failed", true, result{NodeNames: names("a", "b", "c"),
			FailedNodes: failed{"z": "busy"}}, ""},
		{"a node that is unknown", true, result{NodeNames: names("a", "z")},
			`error: extender "URL" claims a filtered node "z" which is not found in the input node list`},
		{"an error", true, result{NodeNames: names("a"), Error: "out of order"}, "error: out of order"},
		{"whole nodes", false, result{Nodes: whole("a", "c")}, "b: !"},
		{"whole nodes, one that is unknown", false, result{Nodes: whole("a", "z")},
			`error: extender "URL" claims a filtered node "z" which is not found in the input node list`},
		{"names instead of whole nodes", false, result{NodeNames: names("a", "b", "c")}, "a: !, b: !, c: !"},
		{"whole nodes instead of names", true, result{Nodes: whole("a", "c")}, "b: !"},
		{"names come first", true, result{NodeNames: names("a"), Nodes: whole("b")}, "b: !, c: !"},
		{"a code that is not 200", true, http.StatusServiceUnavailable,
			"error: failed filter with extender at URL URL/filter, code 503"},
		{"no JSON", true, "<html>", "error: invalid character '<' looking for beginning of value"},
		{"half an answer", true, `{"NodeNames": ["a"`, "error: unexpected EOF"},
		{"nothing", true, "", "error: EOF"},
		{"JSON of another kind", true, `[1, 2]`,
			"error: json: cannot unmarshal array into Go value of type v1.ExtenderFilterResult"},
		{"text after the answer", true, `{"NodeNames": ["a", "b", "c"]} and more`, ""},
	} {
		t.Run(scenario.name, func(t *testing.T) {
			f := newFixture(t)
			s := f.server(func(string, []byte) any { return scenario.answer })
			config := filters(s)
			config.NodeCacheCapable = scenario.caches
			rejected, err := f.with(config).Filter(f.pod("p"), []string{"a", "b", "c"})
			got := tell(rejected)
			if err != nil {
				got = "error: " + err.Error()
			}
			if want := strings.ReplaceAll(scenario.want, "URL/", s.URL+"/"); got != strings.ReplaceAll(want, `"URL"`,
				`"`+s.URL+`"`) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// An extender that may be ignored changes nothing when it fails. Fault: its half answer is used.
func TestFilterPassesOverWhoMayBeIgnored(t *testing.T) {
	for _, answer := range []any{http.StatusBadGateway, "no JSON", result{Error: "out of order"},
		result{NodeNames: names("a", "z"), FailedNodes: failed{"b": "no"}}} {
		f := newFixture(t)
		config := filters(f.server(func(string, []byte) any { return answer }))
		config.Ignorable = true
		rejected, err := f.with(config).Filter(f.pod("p"), []string{"a", "b"})
		if err != nil || len(rejected) != 0 {
			t.Errorf("%v: rejects %v, error %v", answer, rejected, err)
		}
		if len(f.ignored) != 1 || f.ignored[0].Verb != "filter" || f.ignored[0].Extender != config.URLPrefix ||
			f.ignored[0].Err == nil {
			t.Errorf("%v: ignored %+v", answer, f.ignored)
		}
	}
}

// Extenders are asked in turn about what is left, those that may be ignored last, and not at all once nothing is left.
// Faults: order of the file; the second one asked about all; a reason of the first that is lost.
func TestFilterAsksInTurn(t *testing.T) {
	f := newFixture(t)
	var asked []string
	extender := func(name string, answer result) configv1.Extender {
		return filters(f.server(func(_ string, body []byte) any {
			var args extenderv1.ExtenderArgs
			if err := json.Unmarshal(body, &args); err != nil {
				t.Error(err)
			}
			asked = append(asked, name+" about "+strings.Join(*args.NodeNames, " "))
			return answer
		}))
	}
	last := extender("last", result{NodeNames: names("c")})
	last.Ignorable = true
	x := f.with(last,
		extender("first", result{NodeNames: names("c", "b"), FailedNodes: failed{"a": "busy", "c": "rather not"}}),
		extender("second", result{NodeNames: names("b")}))
	// "last" keeps a node that it was not asked about, which is an error, and is passed over.
	rejected, err := x.Filter(f.pod("p"), []string{"a", "b", "c"})
	if err != nil || tell(rejected) != "a: busy, c: rather not" {
		t.Errorf("rejects %q, error %v", tell(rejected), err)
	}
	if want := []string{"first about a b c", "second about c b", "last about b"}; !slices.Equal(asked, want) {
		t.Errorf("asked %q, want %q, error %v", asked, want, err)
	}
	asked = nil
	x = f.with(extender("none", result{}), extender("never", result{}))
	if rejected, err = x.Filter(f.pod("p"), []string{"a"}); err != nil || tell(rejected) != "a: !" || len(asked) != 1 {
		t.Errorf("rejects %q, error %v, asked %q", tell(rejected), err, asked)
	}
}

// What extenders are sent: the whole pod, and whole nodes unless they cache them. The verb is appended to the prefix.
func TestFilterSendsPodAndNodes(t *testing.T) {
	for _, caches := range []bool{true, false} {
		f := newFixture(t)
		var got extenderv1.ExtenderArgs
		s := f.server(func(verb string, body []byte) any {
			if verb != "sched/v1/filter" {
				t.Errorf("asked for %q", verb)
			}
			if err := json.Unmarshal(body, &got); err != nil {
				t.Error(err)
			}
			return result{NodeNames: names("b"), Nodes: whole("b")}
		})
		config := configv1.Extender{URLPrefix: s.URL + "/sched/v1/", FilterVerb: "filter", NodeCacheCapable: caches}
		if _, err := f.with(config).Filter(f.pod("p"), []string{"b"}); err != nil {
			t.Fatal(err)
		}
		if got.Pod == nil || got.Pod.Name != "p" || got.Pod.Annotations["kept"] != "yes" {
			t.Errorf("caches %v: sent pod %v", caches, got.Pod)
		}
		if caches != (got.NodeNames != nil) || caches == (got.Nodes != nil) {
			t.Errorf("caches %v: sent names %v, nodes %v", caches, got.NodeNames, got.Nodes)
		}
		if !caches && got.Nodes.Items[0].Labels["zone"] != "z-b" {
			t.Errorf("sent node %v", got.Nodes.Items[0])
		}
	}
}

// Only pods that ask for a managed resource are sent to an extender that manages some. Faults: init containers not
// looked at; all pods sent.
func TestManagedResources(t *testing.T) {
	f := newFixture(t)
	config := filters(f.server(func(string, []byte) any { return result{} }))
	config.BindVerb, config.ManagedResources = "bind",
		[]configv1.ExtenderManagedResource{{Name: "example.com/a"}, {Name: "example.com/b", IgnoredByScheduler: true}}
	x := f.with(config)
	f.pod("init")
	f.pods["uid-init"].Spec.InitContainers = []v1.Container{
		{Resources: v1.ResourceRequirements{Limits: v1.ResourceList{"example.com/b": apiresource.MustParse("1")},
			Requests: v1.ResourceList{"example.com/b": apiresource.MustParse("1")}}}}
	in := convert.NewIntake().Pod(f.pods["uid-init"])
	for _, scenario := range []struct {
		name  string
		pod   *cluster.Pod
		takes bool
	}{
		{"one that asks", f.pod("p", "example.com/a"), true},
		{"one that asks for the other", f.pod("p", "cpu", "example.com/b"), true},
		{"an init container that asks", in, true},
		{"one that asks for something else", f.pod("p", "example.com/c"), false},
		{"one that asks for nothing of the kind", f.pod("p", "cpu"), false},
	} {
		if got := x.Takes(scenario.pod); got != scenario.takes {
			t.Errorf("%s: taken %v", scenario.name, got)
		}
		if got := x.Binder(scenario.pod); (got == config.URLPrefix) != scenario.takes {
			t.Errorf("%s: bound by %q", scenario.name, got)
		}
		rejected, err := x.Filter(scenario.pod, []string{"a"})
		if err != nil || len(rejected) == 1 != scenario.takes {
			t.Errorf("%s: rejects %v, error %v", scenario.name, rejected, err)
		}
	}
	if x := f.with(configv1.Extender{PreemptVerb: "preempt"}); x.Takes(f.pod("p")) || x.Binder(f.pod("p")) != "" {
		t.Errorf("an extender that neither filters nor ranks nor binds takes part")
	}
}

// An extender that hangs is given up after its time-out, and when the scheduler stops. Fault: no time-out while the
// answer is read.
func TestHangingExtender(t *testing.T) {
	for _, where := range []string{"before the answer", "inside the answer"} {
		f := newFixture(t)
		release := make(chan struct{})
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if where == "inside the answer" {
				fmt.Fprint(w, `{"NodeNames":`)
				w.(http.Flusher).Flush()
			}
			<-release
		}))
		t.Cleanup(s.Close)
		t.Cleanup(func() { close(release) })
		config := filters(s)
		config.HTTPTimeout = metav1.Duration{Duration: 50 * time.Millisecond}
		if _, err := f.with(config).Filter(f.pod("p"), []string{"a"}); err == nil ||
			!strings.Contains(err.Error(), "Client.Timeout") {
			t.Errorf("%s: error %v", where, err)
		}
		config.HTTPTimeout = metav1.Duration{}
		ctx, stop := context.WithCancel(context.Background())
		x, err := New(ctx, []configv1.Extender{config}, f, nil)
		if err != nil {
			t.Fatal(err)
		}
		stop()
		if _, err := x.Filter(f.pod("p"), []string{"a"}); err == nil ||
			!strings.Contains(err.Error(), "context canceled") {
			t.Errorf("%s, scheduler stops: error %v", where, err)
		}
		if x.clients[0].http.Timeout != defaultTimeout {
			t.Errorf("the time-out is %v", x.clients[0].http.Timeout)
		}
	}
}

// An answer without end is not read to its end.
func TestEndlessAnswer(t *testing.T) {
	f := newFixture(t)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		line := `"` + strings.Repeat("x", 1<<16) + `",`
		fmt.Fprint(w, `{"NodeNames":[`)
		for {
			if _, err := fmt.Fprint(w, line); err != nil {
				return
			}
		}
	}))
	t.Cleanup(s.Close)
	_, err := f.with(filters(s)).Filter(f.pod("p"), []string{"a"})
	if want := fmt.Sprintf("the answer of the extender at URL %s/filter is too long", s.URL); err == nil ||
		err.Error() != want {
		t.Errorf("error %v, want %q", err, want)
	}
}

// Objects that are gone meanwhile are an error that names them.
func TestObjectsThatAreNotKnown(t *testing.T) {
	f := newFixture(t)
	config := filters(f.server(func(string, []byte) any { t.Error("asked"); return result{} }))
	config.NodeCacheCapable, config.PrioritizeVerb, config.Weight = false, "prioritize", 1
	x, p := f.with(config), f.pod("p")
	if _, err := x.Filter(p, []string{"a", "z"}); err == nil ||
		!strings.Contains(err.Error(), `node "z": the node is not known`) {
		t.Errorf("a node that is gone: %v", err)
	}
	if scores := x.Score(p, []string{"a", "z"}); len(scores) != 0 || len(f.ignored) != 1 {
		t.Errorf("a node that is gone: scores %v, ignored %v", scores, f.ignored)
	}
	delete(f.pods, "uid-p")
	if _, err := x.Filter(p, []string{"a"}); err == nil ||
		!strings.Contains(err.Error(), "pod ns/p (uid-p): the pod is not known") {
		t.Errorf("a pod that is gone: %v", err)
	}
}
