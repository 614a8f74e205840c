// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kumiki-scheduler/kumiki/localcluster/controllers"
)

var (
	without    = flag.String("without", "", "a controller that TestControllers turns off")
	patienceOf = flag.Duration("patience", longPatience, "how long scenarios of TestControllers wait")
)

// TestControllers: each controller does its work, under its own account and with its own role.
//
// The scenarios run side by side, each in a namespace of its own. The last one stops the heartbeats of all nodes, so it
// comes after the others.
func TestControllers(t *testing.T) {
	args := []string{"--nodes=5", "--feature-gates=GenericWorkload=true",
		"--runtime-config=scheduling.k8s.io/v1beta1=true", "--controllers-arg=--pvclaimbinder-sync-period=1s",
		"--controllers-arg=--node-monitor-grace-period=20s"}
	if *without != "" {
		args = append(args, "--controllers-arg=--controllers=*,-"+*without)
	}
	p := launch(t, args...)
	config, err := clientcmd.BuildConfigFromFlags("", p.ready.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	var shown []string
	t.Run("side by side", func(t *testing.T) {
		for _, s := range scenarios {
			shown = append(shown, s.controllers...)
			if s.name == lastScenario {
				continue
			}
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				s.run(newTenant(t, p, config))
			})
		}
	})
	t.Run(lastScenario, func(t *testing.T) {
		i := slices.IndexFunc(scenarios, func(s scenario) bool { return s.name == lastScenario })
		scenarios[i].run(newTenant(t, p, config))
	})
	for _, name := range controllers.Names() {
		if !slices.Contains(shown, name) {
			t.Errorf("no scenario shows that %s works", name)
		}
	}
}

// lastScenario stops the heartbeats of all nodes.
const lastScenario = "nodes that are silent or gone lose their pods"

// scenario shows that controllers work.
type scenario struct {
	name        string
	controllers []string
	run         func(*tenant)
}

// tenant is the namespace of a scenario.
type tenant struct {
	*testing.T
	program *program
	kubernetes.Interface
	dynamic dynamic.Interface
	mapper  meta.RESTMapper
	ns      string
}

func newTenant(t *testing.T, p *program, config *rest.Config) *tenant {
	t.Helper()
	c := &tenant{T: t, program: p, Interface: p.client}
	var err error
	if c.dynamic, err = dynamic.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	kinds, err := restmapper.GetAPIGroupResources(p.client.Discovery())
	if err != nil {
		t.Fatal(err)
	}
	c.mapper = restmapper.NewDiscoveryRESTMapper(kinds)
	ns, err := p.client.CoreV1().Namespaces().Create(t.Context(),
		&v1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "scenario-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.ns = ns.Name
	// Admission refuses pods of a namespace that has no account yet.
	c.until("the namespace has its account", func() string {
		_, err := p.client.CoreV1().ServiceAccounts(c.ns).Get(t.Context(), "default", metav1.GetOptions{})
		return problem(err)
	})
	return c
}

// longPatience bounds a wait, as patience does. The longest ones: a job begins with the next minute; a node is missing
// for the quarantine of 40 s and up to two passes of 20 s before its pods go.
const longPatience = 4 * time.Minute

// until waits until check returns "".
func (c *tenant) until(what string, check func() string) {
	c.Helper()
	within(c.T, *patienceOf, what, check)
}

// apply creates objects from YAML, NS and NODE replaced.
func (c *tenant) apply(manifests string) {
	c.Helper()
	text := strings.NewReplacer("NS", c.ns, "NODE", "node-0000").Replace(manifests)
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(text)), 4096)
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(object); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			c.Fatal(err)
		}
		if _, err := c.kind(object).Create(c.Context(), object, metav1.CreateOptions{}); err != nil {
			c.Fatalf("create %s %s: %v", object.GetKind(), object.GetName(), err)
		}
	}
}

// kind returns the client for objects like the given one.
func (c *tenant) kind(object *unstructured.Unstructured) dynamic.ResourceInterface {
	c.Helper()
	gvk := object.GroupVersionKind()
	mapping, err := c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		c.Fatal(err)
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return c.dynamic.Resource(mapping.Resource)
	}
	return c.dynamic.Resource(mapping.Resource).Namespace(c.ns)
}

// untilPods waits until pods with a label have the number and the phase.
func (c *tenant) untilPods(label string, want int, phase v1.PodPhase) {
	c.Helper()
	c.until(fmt.Sprintf("%d pods of %s are %s", want, label, phase), func() string {
		pods, err := c.CoreV1().Pods(c.ns).List(c.Context(), metav1.ListOptions{LabelSelector: label})
		if err != nil {
			return err.Error()
		}
		got := 0
		for _, pod := range pods.Items {
			if pod.Status.Phase == phase {
				got++
			}
		}
		if got != want || len(pods.Items) != want {
			return fmt.Sprintf("%d of %d", got, len(pods.Items))
		}
		return ""
	})
}

// untilPhase waits until a pod has the phase.
func (c *tenant) untilPhase(name string, want v1.PodPhase) {
	c.Helper()
	c.until("pod "+name, func() string {
		pod, err := c.CoreV1().Pods(c.ns).Get(c.Context(), name, metav1.GetOptions{})
		if err != nil || pod.Status.Phase != want {
			return fmt.Sprintf("is %s, want %s (%v)", pod.Status.Phase, want, err)
		}
		return ""
	})
}

// untilGone waits until get finds nothing.
func (c *tenant) untilGone(what string, get func() error) {
	c.Helper()
	c.until(what+" is gone", func() string {
		if err := get(); !apierrors.IsNotFound(err) {
			return fmt.Sprintf("it is there (%v)", err)
		}
		return ""
	})
}

func (c *tenant) untilPodGone(name string) {
	c.Helper()
	c.untilGone("pod "+name, func() error {
		_, err := c.CoreV1().Pods(c.ns).Get(c.Context(), name, metav1.GetOptions{})
		return err
	})
}

// untilTerminating waits until an object with the finalizer is about to go, and no longer.
func (c *tenant) untilTerminating(what string, get func() (metav1.Object, error), finalizer string) {
	c.Helper()
	c.until(what+" is terminating and held by "+finalizer, func() string {
		object, err := get()
		if err != nil {
			return err.Error()
		}
		if object.GetDeletionTimestamp() == nil || !slices.Contains(object.GetFinalizers(), finalizer) {
			return fmt.Sprintf("deletion %v, finalizers %v", object.GetDeletionTimestamp(), object.GetFinalizers())
		}
		return ""
	})
}

// must ends the scenario if a request failed.
func (c *tenant) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

func problem(err error) string {
	if err != nil {
		return err.Error()
	}
	return ""
}
