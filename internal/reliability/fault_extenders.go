// SPDX-License-Identifier: Apache-2.0

package reliability

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// faultyExtenders: an extender takes part in the decision, and gives no answer or an invalid one.
func faultyExtenders() []Case {
	return []Case{
		{ID: "F27a", What: "an extender hangs for longer than its time-out", Own: true, Run: extended("filter", "", hangs, "!&deadline exceeded")},
		{ID: "F27b", What: "an extender answers with something that is not JSON", Own: true, Run: extended("filter", "", says("<html>"), "!&invalid character")},
		{ID: "F27c", What: "an extender lets in a node that was not asked about", Own: true,
			Run: extended("filter", "", says(`{"nodenames":["nobody"]}`), "!&nobody")},
		{ID: "F27d", What: "an extender ranks with numbers beyond all bounds", Own: true,
			Run: extended("", "rank", says(`[{"host":"HOST-0","score":9223372036854775807},{"host":"HOST-1","score":-9223372036854775808},{"host":"nobody","score":1}]`), "0|1")},
	}
}

// managed is the resource that the extender knows about.
const managed = v1.ResourceName("reliability.example/asks")

// extenderConfig makes an extender take part for pods that request one resource, which no other pods do.
const extenderConfig = `extenders:
- {urlPrefix: "http://%s", filterVerb: %q, prioritizeVerb: %q, weight: 1, nodeCacheCapable: true, httpTimeout: 1s, managedResources: [{name: %s}]}
`

// extended runs a pod with an extender, and other pods that the extender does not concern.
func extended(filter, rank string, answer func(*Ground) http.HandlerFunc, want string) func(context.Context, *Ground) error {
	return func(ctx context.Context, g *Ground) error {
		err := g.Nodes(ctx, 2, func(n *v1.Node) {
			n.Status.Capacity[managed], n.Status.Allocatable[managed] = resource.MustParse("10"), resource.MustParse("10")
		})
		if err != nil {
			return err
		}
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return unjudged{err}
		}
		server := &http.Server{Handler: answer(g), ReadHeaderTimeout: time.Minute}
		go func() { _ = server.Serve(listener) }() // it ends with Close
		g.Cleanup(func(context.Context) error { return server.Close() })
		if _, err := g.Launch(ctx, Launch{Config: fmt.Sprintf(extenderConfig, listener.Addr(), filter, rank, managed)}); err != nil {
			return err
		}
		err = g.Create(ctx, g.Pod("asks", func(p *v1.Pod) {
			r := &p.Spec.Containers[0].Resources
			r.Limits = v1.ResourceList{managed: resource.MustParse("1")}
			r.Requests[managed] = resource.MustParse("1")
		}))
		if err != nil {
			return err
		}
		if err := g.burst(ctx, "p", 20); err != nil {
			return err
		}
		if err := within(ctx, unaffected, func(ctx context.Context) error { return g.WantsAll(ctx, "p", 20, "*") }); err != nil {
			return err
		}
		return g.Wants(ctx, map[string]string{"asks": want})
	}
}

func hangs(*Ground) http.HandlerFunc {
	return func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-time.After(30 * time.Second):
		}
	}
}

// says answers everything with one text, in which HOST is the beginning of the names of the case's nodes.
func says(text string) func(*Ground) http.HandlerFunc {
	return func(g *Ground) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprint(w, strings.ReplaceAll(text, "HOST", g.Name))
		}
	}
}
