// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	configv1 "k8s.io/kube-scheduler/config/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	"sigs.k8s.io/yaml"
)

// What extenders can do on a real API server: filter with names of nodes and with whole nodes, rank with a weight,
// choose victims, bind, take care of resources, be ignored, and answer over TLS.

// extenders are the extenders of the test, one for each path of their servers. Each takes part only for pods that ask
// for a resource of its name, so that scenarios do not share extenders.
type extenders struct {
	plain, secure, mutual *httptest.Server
	// authority is the certificate that the secure servers show, in PEM.
	authority []byte

	mu       sync.Mutex
	heard    map[string][]extenderCall // path -> what was asked, in order
	relented map[string]bool           // namespace/name of a pod -> its extender stands in its way no more
	client   kubernetes.Interface      // binds; nil before the first scenario that needs it
}

// extenderCall is a call of an extender, whatever the verb.
type extenderCall struct {
	extenderv1.ExtenderArgs
	extenderv1.ExtenderBindingArgs
	preemption extenderv1.ExtenderPreemptionArgs
}

// pod is namespace/name of the pod that a call is about.
func (q extenderCall) pod() string {
	if q.Pod != nil {
		return q.Pod.Namespace + "/" + q.Pod.Name
	}
	return q.PodNamespace + "/" + q.PodName
}

func (q extenderCall) String() string {
	return fmt.Sprintf("about %s: by name %t, whole %t, nodes %v, to bind to %q", q.pod(), q.NodeNames != nil, q.Nodes != nil, q.names(), q.Node)
}

// names are the nodes that a call is about.
func (q extenderCall) names() []string {
	if q.NodeNames != nil {
		return *q.NodeNames
	}
	var names []string
	if q.Nodes != nil {
		for _, n := range q.Nodes.Items {
			names = append(names, n.Name)
		}
	}
	return names
}

// An answer is a body in JSON, or raw text, or nil for no answer at all.
type answerer func(x *extenders, q extenderCall) any

type raw string

const managedBy = "ext.example.com/" // and the extender's name

// settings are the extenders of the first scheduler, with their names for URLs. An extender whose name begins with s-
// answers over TLS; with m- it wants the caller's certificate too.
func (x *extenders) settings() []configv1.Extender {
	with := func(e configv1.Extender, change func(*configv1.Extender)) configv1.Extender {
		change(&e)
		return e
	}
	soon := metav1.Duration{Duration: 200 * time.Millisecond}
	certificate, key := selfSigned()
	over := func(t configv1.ExtenderTLSConfig) func(*configv1.Extender) {
		return func(e *configv1.Extender) { e.EnableHTTPS, e.TLSConfig = true, &t }
	}
	return []configv1.Extender{
		filter("names"),
		with(filter("nodes"), func(e *configv1.Extender) { e.NodeCacheCapable = false }),
		rank("light", 1),
		with(rank("heavy", 5), func(e *configv1.Extender) { e.NodeCacheCapable = false }),
		{URLPrefix: "binder", BindVerb: "bind", HTTPTimeout: metav1.Duration{Duration: 4 * time.Second}},
		filter("broken"),
		with(filter("broken-ignorable"), func(e *configv1.Extender) { e.Ignorable = true }),
		with(filter("hangs-ignorable"), func(e *configv1.Extender) { e.Ignorable, e.HTTPTimeout = true, soon }),
		with(filter("s-known"), over(configv1.ExtenderTLSConfig{CAData: x.authority})),
		with(filter("s-unverified"), func(e *configv1.Extender) { e.EnableHTTPS = true }),
		with(filter("s-stranger"), over(configv1.ExtenderTLSConfig{CAData: certificate})),
		with(filter("m-known"), over(configv1.ExtenderTLSConfig{CAData: x.authority, CertData: certificate, KeyData: key})),
		with(filter("m-nameless"), over(configv1.ExtenderTLSConfig{CAData: x.authority})),
		{URLPrefix: "victims", PreemptVerb: "preempt", NodeCacheCapable: true},
		{URLPrefix: "whole-victims", PreemptVerb: "preempt"},
		{URLPrefix: "victims-fail", PreemptVerb: "preempt", NodeCacheCapable: true},
		{URLPrefix: "victims-fail-ignorable", PreemptVerb: "preempt", NodeCacheCapable: true, Ignorable: true},
		// Those that mean harm; see badInputScenarios.
		with(filter("hangs"), func(e *configv1.Extender) { e.HTTPTimeout = soon }),
		filter("unknown-nodes"),
		with(filter("unknown-whole-nodes"), func(e *configv1.Extender) { e.NodeCacheCapable = false }),
		filter("garbage"),
		filter("complains"),
		rank("boasts", 1<<40),
		rank("rank-fails", 100),
	}
}

func filter(name string) configv1.Extender {
	return configv1.Extender{URLPrefix: name, FilterVerb: "filter", NodeCacheCapable: true}
}

func rank(name string, weight int64) configv1.Extender {
	return configv1.Extender{URLPrefix: name, PrioritizeVerb: "rank", Weight: weight, NodeCacheCapable: true}
}

// takingAll returns extenders that take part for all pods; they have a scheduler of their own.
func takingAll() []configv1.Extender {
	everything := []configv1.ExtenderManagedResource{}
	keeps := filter("keeps-1")
	keeps.ManagedResources = everything
	return []configv1.Extender{keeps, {URLPrefix: "absent", BindVerb: "bind", Ignorable: true, ManagedResources: everything}}
}

// managing takes care of its resource alone: the scheduler does not look whether nodes have it.
func managing() configv1.Extender {
	e := filter("manages")
	e.ManagedResources = []configv1.ExtenderManagedResource{{Name: managedBy + "manages", IgnoredByScheduler: true}}
	return e
}

// answers: path -> what is answered there.
var answers = map[string]answerer{
	// All pods but those called never go to node 2; node 0 is busy for them and node 1 is broken, as the stronger
	// of its two reasons says.
	"/names/filter": func(x *extenders, q extenderCall) any {
		out := extenderv1.ExtenderFilterResult{NodeNames: &[]string{}, FailedNodes: extenderv1.FailedNodesMap{},
			FailedAndUnresolvableNodes: extenderv1.FailedNodesMap{}}
		never := q.Pod.Name == "never" && !x.relents(q.pod())
		for _, name := range q.names() {
			switch {
			case strings.HasSuffix(name, "1"):
				out.FailedNodes[name], out.FailedAndUnresolvableNodes[name] = "hidden", "broken"
			case strings.HasSuffix(name, "2") && !never:
				*out.NodeNames = append(*out.NodeNames, name)
			default:
				out.FailedNodes[name] = "busy"
			}
		}
		return out
	},
	// Pods go to nodes that carry the label named like them.
	"/nodes/filter": func(_ *extenders, q extenderCall) any {
		out := extenderv1.ExtenderFilterResult{Nodes: &v1.NodeList{}, FailedNodes: extenderv1.FailedNodesMap{}}
		if q.Nodes == nil {
			return out
		}
		for _, n := range q.Nodes.Items {
			if n.Labels["for"] == q.Pod.Name {
				out.Nodes.Items = append(out.Nodes.Items, n)
			} else {
				out.FailedNodes[n.Name] = "for " + n.Labels["for"]
			}
		}
		return out
	},
	"/light/rank": likesNode0,
	"/heavy/rank": likesNode0,
	"/binder/bind": func(x *extenders, q extenderCall) any {
		switch relents := x.relents(q.pod()); {
		case q.PodName == "refused" && !relents:
			return extenderv1.ExtenderBindingResult{Error: "not today"}
		case q.PodName == "forgotten" && !relents:
			return extenderv1.ExtenderBindingResult{} // and nothing was done
		case q.PodName == "unanswered" && !relents:
			return nil
		case q.PodName == "astray": // goes to the other node
			q.Node = strings.NewReplacer("-0000", "-0001", "-0001", "-0000").Replace(q.Node)
		}
		x.mu.Lock()
		client := x.client
		x.mu.Unlock()
		err := client.CoreV1().Pods(q.PodNamespace).Bind(context.Background(), &v1.Binding{
			ObjectMeta: metav1.ObjectMeta{Namespace: q.PodNamespace, Name: q.PodName, UID: q.PodUID},
			Target:     v1.ObjectReference{Kind: "Node", Name: q.Node},
		}, metav1.CreateOptions{})
		if err != nil {
			return extenderv1.ExtenderBindingResult{Error: err.Error()}
		}
		return extenderv1.ExtenderBindingResult{}
	},
	// Pods are evicted only from nodes 1.
	"/victims/preempt": func(_ *extenders, q extenderCall) any {
		out := extenderv1.ExtenderPreemptionResult{NodeNameToMetaVictims: map[string]*extenderv1.MetaVictims{}}
		for node, victims := range q.preemption.NodeNameToMetaVictims {
			if strings.HasSuffix(node, "1") {
				out.NodeNameToMetaVictims[node] = victims
			}
		}
		return out
	},
	// Pods are evicted only from nodes 2, where pods must have the name of an example.
	"/whole-victims/preempt": func(_ *extenders, q extenderCall) any {
		out := extenderv1.ExtenderPreemptionResult{NodeNameToMetaVictims: map[string]*extenderv1.MetaVictims{}}
		for node, victims := range q.preemption.NodeNameToVictims {
			if strings.HasSuffix(node, "2") && victims.Pods[0].Name == "v2" && victims.Pods[0].Spec.NodeName == node {
				out.NodeNameToMetaVictims[node] = &extenderv1.MetaVictims{Pods: []*extenderv1.MetaPod{{UID: string(victims.Pods[0].UID)}}}
			}
		}
		return out
	},
	"/victims-fail/preempt": func(x *extenders, q extenderCall) any {
		if x.relents(q.pod()) {
			return extenderv1.ExtenderPreemptionResult{NodeNameToMetaVictims: q.preemption.NodeNameToMetaVictims}
		}
		return raw("")
	},
	"/victims-fail-ignorable/preempt": func(*extenders, extenderCall) any { return raw("") },
	"/fails/filter": func(x *extenders, q extenderCall) any {
		if x.relents(q.pod()) {
			return extenderv1.ExtenderFilterResult{NodeNames: q.NodeNames}
		}
		return raw("")
	},
	"/keeps-1/filter":      keepsNode1,
	"/manages/filter":      keepsNode1,
	"/s-known/filter":      keepsNode1,
	"/s-unverified/filter": keepsNode1,
	"/s-stranger/filter":   keepsNode1,
	"/m-known/filter":      keepsNode1,
	"/m-nameless/filter":   keepsNode1,

	"/hangs/filter":           func(*extenders, extenderCall) any { return nil },
	"/hangs-ignorable/filter": func(*extenders, extenderCall) any { return nil },
	"/unknown-nodes/filter": func(_ *extenders, q extenderCall) any {
		names := append(q.names(), "no-such-node")
		return extenderv1.ExtenderFilterResult{NodeNames: &names}
	},
	"/unknown-whole-nodes/filter": func(*extenders, extenderCall) any {
		return extenderv1.ExtenderFilterResult{Nodes: &v1.NodeList{Items: []v1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "no-such-node"}}}}}
	},
	"/garbage/filter": func(*extenders, extenderCall) any { return raw("\x00<html>") },
	"/complains/filter": func(*extenders, extenderCall) any {
		return extenderv1.ExtenderFilterResult{Error: "the disk is on fire"}
	},
	// Scores far outside of the range, which with the weight are more than 64 bits hold, of nodes that are there
	// and others.
	"/boasts/rank": func(_ *extenders, q extenderCall) any {
		out := extenderv1.HostPriorityList{{Host: "no-such-node", Score: 1 << 62}}
		for _, name := range q.names() {
			score := int64(-1) << 20
			if strings.HasSuffix(name, "1") {
				score = 1 << 20
			}
			out = append(out, extenderv1.HostPriority{Host: name, Score: score})
		}
		return out
	},
}

func likesNode0(_ *extenders, q extenderCall) any {
	var out extenderv1.HostPriorityList
	for _, name := range q.names() {
		if strings.HasSuffix(name, "0") {
			out = append(out, extenderv1.HostPriority{Host: name, Score: extenderv1.MaxExtenderPriority})
		}
	}
	return out
}

func keepsNode1(_ *extenders, q extenderCall) any {
	kept := []string{}
	for _, name := range q.names() {
		if strings.HasSuffix(name, "1") {
			kept = append(kept, name)
		}
	}
	return extenderv1.ExtenderFilterResult{NodeNames: &kept}
}

// startExtenders serves all extenders until the test ends.
func startExtenders(t *testing.T) *extenders {
	t.Helper()
	x := &extenders{heard: map[string][]extenderCall{}, relented: map[string]bool{}}
	server := func() *httptest.Server {
		s := httptest.NewUnstartedServer(x)
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		t.Cleanup(s.Close)
		return s
	}
	x.plain, x.secure, x.mutual = server(), server(), server()
	x.mutual.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	x.plain.Start()
	x.secure.StartTLS()
	x.mutual.StartTLS()
	x.authority = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: x.secure.Certificate().Raw})
	return x
}

// ServeHTTP answers; a path without an answer fails.
func (x *extenders) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var q extenderCall
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(body, &q.ExtenderArgs)
	}
	if err == nil {
		err = json.Unmarshal(body, &q.ExtenderBindingArgs)
	}
	if err == nil {
		err = json.Unmarshal(body, &q.preemption)
	}
	x.mu.Lock()
	x.heard[r.URL.Path] = append(x.heard[r.URL.Path], q)
	x.mu.Unlock()
	answer := answers[r.URL.Path]
	if err != nil || answer == nil {
		http.Error(w, fmt.Sprint("cannot answer: ", err), http.StatusInternalServerError)
		return
	}
	switch a := answer(x, q).(type) {
	case nil:
		<-r.Context().Done() // until the caller gives up
	case raw:
		io.WriteString(w, string(a))
	default:
		json.NewEncoder(w).Encode(a)
	}
}

// about are the calls about a pod that came to a path.
func (x *extenders) about(path, pod string) []extenderCall {
	x.mu.Lock()
	defer x.mu.Unlock()
	var found []extenderCall
	for _, q := range x.heard[path] {
		if q.pod() == pod {
			found = append(found, q)
		}
	}
	return found
}

func (x *extenders) relents(pod string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.relented[pod]
}

// relent makes the extender accept the scenario's pods that it rejected.
func (x *extenders) relent(pods ...string) func(context.Context, *stage) error {
	return func(_ context.Context, s *stage) error {
		x.mu.Lock()
		defer x.mu.Unlock()
		for _, p := range pods {
			x.relented[s.scenario+"/"+p] = true
		}
		return nil
	}
}

// bindsWith gives the extender that binds the means to do so.
func (x *extenders) bindsWith(_ context.Context, s *stage) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.client = s.client
	return nil
}

// configured is a configuration with extenders, which take part for pods that ask for their resources.
func (x *extenders) configured(base string, list ...configv1.Extender) string {
	entries := make([]configv1.Extender, len(list))
	for i, e := range list {
		name, server := e.URLPrefix, x.plain
		switch {
		case strings.HasPrefix(name, "s-"):
			server = x.secure
		case strings.HasPrefix(name, "m-"):
			server = x.mutual
		}
		e.URLPrefix = server.URL + "/" + name
		if e.ManagedResources == nil {
			e.ManagedResources = []configv1.ExtenderManagedResource{{Name: managedBy + name}}
		}
		entries[i] = e
	}
	text, err := yaml.Marshal(map[string]any{"extenders": entries})
	if err != nil {
		panic(err)
	}
	return base + "\n" + string(text)
}

// extended are nodes that offer the resource of an extender.
func extended(count int, names ...string) [][2]string {
	var devices []string
	for _, name := range names {
		devices = append(devices, managedBy+name+": 100")
	}
	return [][2]string{{"a", fmt.Sprintf("{count: %d, devices: {%s}}", count, strings.Join(devices, ", "))}}
}

// via is a pod that an extender takes part for.
func via(pod, extender, more string) string {
	return "- {kind: Pod, name: " + pod + ", requests: {" + managedBy + extender + `: "1"}` + more + "}\n"
}

func extenderScenarios(x *extenders) []scenario {
	prefers1 := `, spec: {affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 100, preference: {matchFields: [{key: metadata.name, operator: In, values: [SCENARIO-a-0001]}]}}]}}}`
	return []scenario{
		{"extender-names", extended(3, "names"), []step{
			{apply: via("p", "names", "") + via("never", "names", "") + "- {kind: Pod, name: unasked}",
				want: map[string]string{"p": "a-2", "never": "!Unschedulable&2 busy&1 broken", "unasked": "*"}},
			{do: func(ctx context.Context, s *stage) error {
				asked := x.about("/names/filter", s.scenario+"/p")
				if len(asked) == 0 || asked[0].NodeNames == nil || asked[0].Nodes != nil || len(asked[0].names()) != 3 {
					return fmt.Errorf("about p the extender was asked %+v, want three names", asked)
				}
				if asked := x.about("/names/filter", s.scenario+"/unasked"); len(asked) > 0 {
					return fmt.Errorf("the extender was asked about a pod without its resource: %+v", asked)
				}
				return nil
			}},
			// Whatever happens may change an extender's mind, so any event wakes the pod.
			{do: x.relent("never")},
			{do: patch("Node", "extender-names-a-0000", `{"metadata":{"labels":{"any":"change"}}}`), want: map[string]string{"never": "a-2"}},
		}},
		{"extender-nodes", append(extended(2, "nodes"), [2]string{"b", "{labels: {for: p}, devices: {" + managedBy + "nodes: 1}}"}), []step{
			{apply: via("p", "nodes", "") + via("q", "nodes", ""), want: map[string]string{"p": "b-0", "q": "!2 for "}},
			{do: func(_ context.Context, s *stage) error {
				asked := x.about("/nodes/filter", s.scenario+"/p")
				if len(asked) == 0 || asked[0].NodeNames != nil || asked[0].Nodes == nil || len(asked[0].Nodes.Items) != 3 {
					return fmt.Errorf("about p the extender was asked %+v, want three nodes", asked)
				}
				if n := asked[0].Nodes.Items[0]; n.Status.NodeInfo.KubeletVersion == "" || n.UID == "" {
					return fmt.Errorf("the extender was sent part of a node: %+v", n)
				}
				return nil
			}},
			// It is sent nodes as they are now.
			{do: patch("Node", "extender-nodes-a-0001", `{"metadata":{"labels":{"for":"q"}}}`), want: map[string]string{"q": "a-1"}},
		}},
		// Against 200 for the preferred node, an extender gives 100 times its weight; without, 100 are plenty.
		{"extender-ranks", extended(2, "light", "heavy"), []step{
			{apply: `- {kind: Pod, name: big, cpu: "1", spec: {nodeSelector: {kubernetes.io/hostname: SCENARIO-a-0000}}}`, want: map[string]string{"big": "a-0"}},
			{apply: "- {kind: Pod, name: unranked}", want: map[string]string{"unranked": "a-1"}},
			{apply: via("light", "light", ""), want: map[string]string{"light": "a-0"}},
			{apply: via("too-light", "light", prefers1), want: map[string]string{"too-light": "a-1"}},
			{apply: via("heavy", "heavy", prefers1), want: map[string]string{"heavy": "a-0"}},
			{do: func(_ context.Context, s *stage) error {
				names, nodes := x.about("/light/rank", s.scenario+"/light"), x.about("/heavy/rank", s.scenario+"/heavy")
				if len(names) == 0 || names[0].NodeNames == nil || len(nodes) == 0 || nodes[0].Nodes == nil {
					return fmt.Errorf("the extenders were asked %+v and %+v, want names and nodes", names, nodes)
				}
				return nil
			}},
		}},
		{"extender-binds", extended(2, "binder"), []step{
			{do: x.bindsWith},
			{apply: via("p", "binder", "") + via("refused", "binder", "") + via("forgotten", "binder", "") + "- {kind: Pod, name: own}",
				want: map[string]string{"p": "*", "own": "*", "refused": "!SchedulerError&not today",
					"forgotten": "!SchedulerError&it answered that the pod is bound, and the pod is not"}},
			{do: func(ctx context.Context, s *stage) error {
				asked := x.about("/binder/bind", s.scenario+"/p")
				p, err := s.client.CoreV1().Pods(s.scenario).Get(ctx, "p", metav1.GetOptions{})
				if err != nil {
					return err
				}
				if len(asked) != 1 || asked[0].Node != p.Spec.NodeName || asked[0].PodUID != p.UID {
					return fmt.Errorf("about p on %s the extender was asked %+v", p.Spec.NodeName, asked)
				}
				if asked := x.about("/binder/bind", s.scenario+"/own"); len(asked) > 0 {
					return fmt.Errorf("the extender was to bind a pod without its resource: %+v", asked)
				}
				return nil
			}},
			{do: x.relent("refused", "forgotten"), want: map[string]string{"refused": "*", "forgotten": "*"}},
		}},
		{"extender-ignorable", extended(1, "broken", "broken-ignorable", "hangs-ignorable"), []step{
			{apply: via("p", "broken-ignorable", "") + via("q", "hangs-ignorable", "") + via("waits", "broken", "") + "- {kind: Pod, name: others}",
				want: map[string]string{"p": "a-0", "q": "a-0", "others": "a-0", "waits": "!SchedulerError&failed filter with extender at URL " + x.plain.URL + "/broken/filter, code 500"}},
		}},
		// One that manages no resources is asked about every pod, and one that may be ignored leaves binds to the
		// scheduler.
		{"extender-of-all", [][2]string{{"a", "{count: 2}"}}, []step{
			{apply: repeated(4, "{kind: Pod, name: p%d, spec: {schedulerName: asks-about-all}}"), want: map[string]string{"p0": "a-1", "p1": "a-1", "p2": "a-1", "p3": "a-1"}},
			{do: func(_ context.Context, s *stage) error {
				if asked := x.about("/absent/bind", s.scenario+"/p0"); len(asked) != 1 || asked[0].Node != s.scenario+"-a-0001" {
					return fmt.Errorf("to bind p0 the extender was asked %+v", asked)
				}
				return nil
			}},
		}},
		// A resource that no node has is the extender's affair if the scheduler ignores it, and else the
		// scheduler's too.
		{"extender-manages", [][2]string{{"a", "{count: 2}"}}, []step{
			{apply: repeated(4, strings.TrimSpace(via("p%d", "manages", ", spec: {schedulerName: leaves-to-extender}")[2:])) + via("checked", "names", ""),
				want: map[string]string{"p0": "a-1", "p1": "a-1", "p2": "a-1", "p3": "a-1", "checked": "!Unschedulable&2 Insufficient " + managedBy + "names"}},
			{do: func(_ context.Context, s *stage) error {
				if asked := x.about("/names/filter", s.scenario+"/checked"); len(asked) > 0 {
					return fmt.Errorf("the extender was asked about a pod that fits nowhere: %+v", asked)
				}
				return nil
			}},
		}},
		// What the first extender leaves is what the next is asked about.
		{"extender-chain", append(extended(3, "names", "nodes"), [2]string{"b", "{}"}), []step{
			{apply: "- {kind: Pod, name: p, requests: {" + managedBy + `names: "1", ` + managedBy + `nodes: "1"}}` + "\n", want: map[string]string{"p": "!1 busy&1 broken&1 for "}},
			{do: patch("Node", "extender-chain-a-0002", `{"metadata":{"labels":{"for":"p"}}}`), want: map[string]string{"p": "a-2"}},
			{do: func(_ context.Context, s *stage) error {
				for _, asked := range x.about("/nodes/filter", s.scenario+"/p") {
					if len(asked.names()) != 1 {
						return fmt.Errorf("the second extender was asked about %v", asked.names())
					}
				}
				return nil
			}},
		}},
		{"extender-tls", extended(2, "s-known", "s-unverified", "s-stranger", "m-known", "m-nameless"), []step{
			{apply: via("known", "s-known", "") + via("unverified", "s-unverified", "") + via("both-known", "m-known", ""),
				want: map[string]string{"known": "a-1", "unverified": "a-1", "both-known": "a-1"}},
			{apply: via("stranger", "s-stranger", "") + via("nameless", "m-nameless", "") + "- {kind: Pod, name: others}",
				want: map[string]string{"stranger": "!SchedulerError&certificate signed by unknown authority", "nameless": "!SchedulerError&/m-nameless/filter", "others": "*"}},
		}},
	}
}

// selfSigned returns a self-signed certificate and its key, in PEM.
func selfSigned() (certificate, key []byte) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		panic(err)
	}
	encoded, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		panic(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded})
}
