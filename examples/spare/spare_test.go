// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/host/framework"
	"github.com/kumiki-scheduler/kumiki/host/framework/plugintest"
)

const nodes = `
apiVersion: v1
kind: Node
metadata: {name: extra, labels: {spare: "yes"}}
`

// TestAPodThatBecomesUrgent: a pod waits for a node that is not spare, and gets the spare one once it is urgent.
func TestAPodThatBecomesUrgent(t *testing.T) {
	c := plugintest.Start(t, plugintest.Options{Plugins: []framework.Registration{{Name: Name, Factory: New}}})
	c.Apply(nodes)
	web := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	c.Set(web)
	t.Logf("%s: web waits: %s", c.Now().Format(time.TimeOnly), c.Pod("web").Message)

	web.Labels = map[string]string{"urgent": "yes"}
	c.Set(web)
	c.Advance(30 * time.Second)
	for _, problem := range c.Problems() {
		t.Errorf("%s: %v", c.Now().Format(time.TimeOnly), problem.Err)
	}
	if node := c.Pod("web").Node; node != "extra" {
		t.Errorf("%s: web is on %q, want extra", c.Now().Format(time.TimeOnly), node)
	}
}
