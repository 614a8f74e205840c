// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// behind is a proxy before a server until the test ends, and how clients reach it.
func behind(t *testing.T, s *apiServer) (*Proxy, *rest.Config) {
	t.Helper()
	proxy, err := StartFor(t.TempDir(), s.direct())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := proxy.Close(); err != nil {
			t.Error(err)
		}
	})
	through, err := clientcmd.BuildConfigFromFlags("", proxy.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	return proxy, through
}

// ways are how Rules come between a client and a server: by name, a configuration of a client and its rules.
func ways(t *testing.T, s *apiServer) map[string]struct {
	*rest.Config
	rules *Rules
} {
	t.Helper()
	proxy, through := behind(t, s)
	inside, rules := s.direct(), &Rules{}
	inside.Wrap(func(next http.RoundTripper) http.RoundTripper { return NewTransport(rules, next) })
	return map[string]struct {
		*rest.Config
		rules *Rules
	}{"proxy": {through, &proxy.Rules}, "transport": {inside, rules}}
}

func bind(ctx context.Context, c *kubernetes.Clientset, pod string) error {
	return c.CoreV1().Pods("ns").Bind(ctx, &v1.Binding{ObjectMeta: metav1.ObjectMeta{Name: pod}, Target: v1.ObjectReference{Name: "n"}}, metav1.CreateOptions{})
}

// TestRequestsMeetTheirFate sends a bind through each fault and checks both the answer and whether the API server
// received the bind. It fails if a fate answers before it applies, applies what it must not, or matches a wrong
// request.
func TestRequestsMeetTheirFate(t *testing.T) {
	is := func(match func(error) bool) func(error) bool { return match }
	anyError := func(err error) bool { return err != nil }
	for name, c := range map[string]struct {
		fate    Fate
		expect  func(error) bool
		applied bool
		quiet   bool // no answer comes until the client gives up
	}{
		"nothing":       {Fate{}, is(func(err error) bool { return err == nil }), true, false},
		"slow":          {Slow(time.Millisecond), is(func(err error) bool { return err == nil }), true, false},
		"too many":      {TooMany(0), apierrors.IsTooManyRequests, false, false},
		"error before":  {ErrorBefore(500), apierrors.IsInternalError, false, false},
		"error after":   {ErrorAfter(500), apierrors.IsInternalError, true, false},
		"conflict":      {ErrorBefore(409), apierrors.IsConflict, false, false},
		"cut before":    {CutBefore(), anyError, false, false},
		"cut after":     {CutAfter(), anyError, true, false},
		"silent before": {SilentBefore(), is(func(err error) bool { return errors.Is(err, context.DeadlineExceeded) }), false, true},
		"silent after":  {SilentAfter(), is(func(err error) bool { return errors.Is(err, context.DeadlineExceeded) }), true, true},
		"later":         {AppliedLater(time.Millisecond), apierrors.IsTimeout, true, false},
	} {
		server := newServer(t)
		for way, w := range ways(t, server) {
			t.Run(name+"/"+way, func(t *testing.T) {
				set := client(t, w.Config)
				before := len(server.applied())
				rule := w.rules.On(Request{Verb: "create", Resource: "pods", Subresource: "binding", Namespace: "ns", Name: "a", Times: 1, Fate: c.fate})
				ctx := t.Context()
				if c.quiet {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, 200*time.Millisecond)
					defer cancel()
				}
				if err := bind(ctx, set, "a"); !c.expect(err) {
					t.Errorf("the client got %v", err)
				}
				if c.applied {
					eventually(t, func() bool { return len(server.applied()) > before })
				}
				// The rule has struck once and is used up; another pod was never meant.
				if err := errors.Join(bind(t.Context(), set, "b"), bind(t.Context(), set, "a")); err != nil {
					t.Errorf("a request that the rule does not match: %v", err)
				}
				want := []string{"b", "a"}
				if c.applied {
					want = []string{"a", "b", "a"}
				}
				if got := server.applied()[before:]; !slices.Equal(got, want) || rule.Hits() != 1 {
					t.Errorf("applied %v after %d hits, want %v after 1", got, rule.Hits(), want)
				}
			})
		}
	}
}

// TestASilentRequestIsCutWhenItsFaultIsHealed would hang if silence outlived its rule.
func TestASilentRequestIsCutWhenItsFaultIsHealed(t *testing.T) {
	server := newServer(t)
	for way, w := range ways(t, server) {
		t.Run(way, func(t *testing.T) {
			rule := w.rules.On(Request{Subresource: "binding", Fate: SilentBefore()})
			result := make(chan error, 1)
			go func() { result <- bind(t.Context(), client(t, w.Config), "a") }()
			if err := rule.Await(t.Context()); err != nil {
				t.Fatal(err)
			}
			rule.Remove()
			if err := <-result; err == nil {
				t.Error("the client got the answer that the pod is bound")
			}
			if got := server.applied(); len(got) != 0 {
				t.Errorf("applied %v", got)
			}
		})
	}
}

// TestRulesCountAndChoose fails when Every, Times or a rule that only counts are read wrongly.
func TestRulesCountAndChoose(t *testing.T) {
	r := &Rules{}
	counts := r.On(Request{Resource: "pods"})
	strikes := r.On(Request{Resource: "pods", Every: 3, Times: 2, Fate: ErrorBefore(500)})
	var struck []int
	for i := range 12 {
		if rule := r.forRequest(asked{verb: "get", resource: "pods"}); rule == strikes {
			struck = append(struck, i)
		}
	}
	if r.forRequest(asked{verb: "get", resource: "nodes"}) != nil || !slices.Equal(struck, []int{2, 5}) || counts.Hits() != 12 || strikes.Hits() != 2 {
		t.Errorf("struck %v, counted %d and %d", struck, counts.Hits(), strikes.Hits())
	}
	r.Clear()
	if r.forRequest(asked{resource: "pods"}) != nil {
		t.Error("a rule strikes after Clear")
	}
}

// TestEventsAreTwisted tells a watch of events under each rule, in both forms in which API servers write them. It fails
// when a frame is cut in the wrong place, and when a rule loses what it should only move.
func TestEventsAreTwisted(t *testing.T) {
	for name, c := range map[string]struct {
		event Event
		tell  []string
		want  []string
	}{
		"no rule matches":                   {Event{Name: "nobody", Twist: Drop()}, []string{"+a", "~a", "-a", "=x"}, []string{"+a", "~a", "-a", "=x"}},
		"drop one":                          {Event{Type: "ADDED", Name: "a", Times: 1, Twist: Drop()}, []string{"+a", "+b", "~a", "+a"}, []string{"+b", "~a", "+a"}},
		"drop all but bookmarks":            {Event{Twist: Drop()}, []string{"+a", "~a", "=x"}, []string{"=x"}},
		"drop bookmarks":                    {Event{Type: "BOOKMARK", Twist: Drop()}, []string{"+a", "=x", "+b"}, []string{"+a", "+b"}},
		"twice":                             {Event{Name: "b", Twist: Duplicate()}, []string{"+a", "+b", "+c"}, []string{"+a", "+b", "+b", "+c"}},
		"hold":                              {Event{Name: "a", Times: 1, Twist: Hold(2, time.Hour)}, []string{"+a", "+b", "+c", "+d"}, []string{"+b", "+c", "+a", "+d"}},
		"hold, but not past its own object": {Event{Name: "a", Times: 1, Twist: Hold(2, time.Hour)}, []string{"+a", "+b", "~a", "+c"}, []string{"+b", "+a", "~a", "+c"}},
		"hold until its time is up":         {Event{Name: "a", Twist: Hold(9, 10*time.Millisecond)}, []string{"+a"}, []string{"+a"}},
		"stall":                             {Event{Name: "a", Twist: Stall(10 * time.Millisecond)}, []string{"+a", "+b"}, []string{"+a", "+b"}},
		"garble":                            {Event{Name: "b", Twist: Garble()}, []string{"+a", "+b", "+c"}, []string{"+a", "!500"}},
		"by what the object says": {Event{When: func(s Seen) bool {
			o, err := s.Object()
			pod, ok := o.(*v1.Pod)
			return err == nil && ok && pod.Spec.NodeName == "node-of-b" && s.ResourceVersion == "7" && s.UID == "b"
		}, Twist: Drop()}, []string{"+a", "+b", "+c"}, []string{"+a", "+c"}},
	} {
		for _, media := range []string{asJSON, asProto} {
			server := newServer(t)
			for way, w := range ways(t, server) {
				t.Run(name+"/"+media+"/"+way, func(t *testing.T) {
					w.AcceptContentTypes, w.ContentType = media, media
					c.event.Resource = "pods"
					w.rules.OnEvent(c.event)
					heard := listen(t, client(t, w.Config))
					server.tell(c.tell...)
					expect(t, heard, c.want...)
				})
				// The next way must not find this one's watch still open.
				eventually(t, func() bool { return w.rules.Watches("pods") == 0 })
				server.CloseClientConnections()
			}
		}
	}
}

// TestAFrozenWatchGoesOnWhereItWas fails when a frozen watch loses events, breaks, or lets some through.
func TestAFrozenWatchGoesOnWhereItWas(t *testing.T) {
	server := newServer(t)
	for way, w := range ways(t, server) {
		t.Run(way, func(t *testing.T) {
			heard := listen(t, client(t, w.Config))
			server.tell("+a")
			expect(t, heard, "+a")
			ice := w.rules.Freeze("pods")
			if err := ice.Await(t.Context()); err != nil {
				t.Fatal(err)
			}
			server.tell("+b", "+c")
			select {
			case e := <-heard:
				t.Errorf("heard %s while frozen", e)
			case <-time.After(100 * time.Millisecond):
			}
			ice.Remove()
			expect(t, heard, "+b", "+c")
		})
		eventually(t, func() bool { return w.rules.Watches("*") == 0 })
		server.CloseClientConnections()
	}
}

// TestWatchesEnd ends watches in each way, as a client sees it.
func TestWatchesEnd(t *testing.T) {
	for _, media := range []string{asJSON, asProto} {
		for name, c := range map[string]struct {
			how  End
			want []string
		}{"closed": {Closed, []string{"end"}}, "expired": {Expired, []string{"!410", "end"}}, "severed": {Severed, []string{"!500", "end"}}, "by the API server": {End(255), []string{"end"}}} {
			server := newServer(t)
			for way, w := range ways(t, server) {
				t.Run(name+"/"+media+"/"+way, func(t *testing.T) {
					w.AcceptContentTypes, w.ContentType = media, media
					heard := listen(t, client(t, w.Config))
					server.tell("+a")
					expect(t, heard, "+a")
					if n := w.rules.EndWatches("nodes", c.how); n != 0 {
						t.Errorf("%d watches of nodes ended", n)
					}
					if c.how == End(255) {
						server.tell(".")
					} else if n := w.rules.EndWatches("pods", c.how); n != 1 {
						t.Errorf("%d watches ended", n)
					}
					expect(t, heard, c.want...)
				})
				eventually(t, func() bool { return w.rules.Watches("*") == 0 })
			}
		}
	}
}

// TestAPartedClientGoesOnAfterwards fails when a partition breaks connections or lets bytes through.
func TestAPartedClientGoesOnAfterwards(t *testing.T) {
	server := newServer(t)
	proxy, cfg := behind(t, server)
	set := client(t, cfg)
	heard := listen(t, set)
	server.tell("+a")
	expect(t, heard, "+a")
	proxy.Part()
	result := make(chan error, 1)
	go func() { result <- bind(t.Context(), set, "a") }()
	server.tell("+b")
	select {
	case e := <-heard:
		t.Errorf("heard %s while parted", e)
	case err := <-result:
		t.Errorf("answered %v while parted", err)
	case <-time.After(100 * time.Millisecond):
	}
	if got := server.applied(); len(got) != 0 {
		t.Errorf("applied %v while parted", got)
	}
	proxy.Heal()
	expect(t, heard, "+b")
	if err := <-result; err != nil {
		t.Error(err)
	}
}

// TestTheProxyHasItsOwnCredentials fails when the proxy serves anyone on this machine, or passes on its own token.
func TestTheProxyHasItsOwnCredentials(t *testing.T) {
	server := newServer(t)
	proxy, cfg := behind(t, server)
	if err := bind(t.Context(), client(t, cfg), "a"); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(server.agents, []string{"Bearer the-scheduler"}) {
		t.Errorf("the API server saw %v", server.agents)
	}
	cfg.BearerToken = ""
	if err := bind(t.Context(), client(t, cfg), "a"); !apierrors.IsUnauthorized(err) {
		t.Errorf("an unknown client got %v", err)
	}
	// The API server is gone: no other process answers for it.
	own, err := clientcmd.BuildConfigFromFlags("", proxy.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	server.CloseClientConnections()
	server.Listener.Close()
	var said apierrors.APIStatus
	if err := bind(t.Context(), client(t, own), "a"); err == nil || errors.As(err, &said) {
		t.Errorf("without an API server the client got %v", err)
	}
}
