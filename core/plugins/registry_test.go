// SPDX-License-Identifier: Apache-2.0

package plugins

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/plugins/basic"
	"github.com/kumiki-scheduler/kumiki/core/plugins/resources"
	"github.com/kumiki-scheduler/kumiki/internal/plugintest"
)

// Every plugin of the default profile can be made by name with its defaults, and does what its weight says.
func TestDefaultProfileCanBeMade(t *testing.T) {
	for i, e := range DefaultProfile() {
		r, ok := Lookup(e.Name)
		if !ok || Registry()[i].Name != e.Name {
			t.Fatalf("%s is not in the registry at place %d", e.Name, i)
		}
		p, err := r.New(nil)
		if err != nil {
			t.Fatalf("%s with default arguments: %v", e.Name, err)
		}
		if p.Name() != e.Name {
			t.Errorf("%s calls itself %s", e.Name, p.Name())
		}
		if _, scores := p.(plugin.Scorer); scores != (e.Weight > 0) {
			t.Errorf("%s scores: %v, weight %d", e.Name, scores, e.Weight)
		}
	}
	if _, ok := Lookup("NodeResources"); ok {
		t.Errorf("Lookup finds a plugin that does not exist")
	}
}

// Arguments of the wrong type are refused, whether the plugin takes others or none.
func TestRegistryRefusesWrongArguments(t *testing.T) {
	for _, name := range []string{resources.NodeResourcesFitName, basic.NodePortsName} {
		r, _ := Lookup(name)
		if _, err := r.New(resources.BalancedArgs{}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s with arguments of another plugin: %v", name, err)
		}
	}
	r, _ := Lookup(resources.NodeResourcesFitName)
	args := r.DefaultArgs().(resources.FitArgs)
	args.Strategy = "Best"
	if p, err := r.New(args); err == nil || p != nil {
		t.Errorf("a bad strategy gives %v, %v", p, err)
	}
}

// No plugin registers a hint as Alike that reads more than it says.
func TestAlikeHints(t *testing.T) {
	var all []plugin.Plugin
	for _, e := range Registry() {
		all = append(all, plugintest.Must(e.New(nil)))
	}
	plugintest.CheckAlikeHints(t, func(t *rapid.T, name string) *v1.Pod { return plugintest.RandomPod(t, name, 3) }, all...)
}
