// SPDX-License-Identifier: Apache-2.0

package hosted

import (
	"context"
	"maps"
	"slices"
	"strings"

	apiruntime "k8s.io/apimachinery/pkg/runtime"
	configv1 "k8s.io/kube-scheduler/config/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/kumiki-scheduler/kumiki/conformance/oracle"
	"github.com/kumiki-scheduler/kumiki/host/framework"
)

// suffix makes the name of a hosted plugin of that of a native one. No plugin's name begins with that of another one,
// so sorted lists of plugins keep their order.
const suffix = "-hosted"

// Name returns the name in profiles of one of upstream's plugins that is hosted.
func Name(plugin string) string { return plugin + suffix }

// Own returns a text with the plugins' own names.
func Own(text string) string { return strings.ReplaceAll(text, suffix, "") }

// Registrations returns upstream's in-tree plugins, to be hosted. They see objects, until ctx ends.
func Registrations(ctx context.Context, objects *oracle.Objects) []framework.Registration {
	own := handle{devices: objects.Devices(ctx),
		volumes: nodevolumelimits.NewCSIManager(objects.Factory.Storage().V1().CSINodes().Lister())}
	registry := plugins.NewInTreeRegistry()
	var out []framework.Registration
	for _, name := range slices.Sorted(maps.Keys(registry)) {
		out = append(out, registration(name, registry[name], own))
	}
	return out
}

// registration returns one of upstream's plugins, to be hosted.
func registration(name string, factory frameworkruntime.PluginFactory, own handle) framework.Registration {
	return framework.Registration{Name: Name(name), Undeclared: true,
		Factory: func(ctx context.Context, args apiruntime.Object, h fwk.Handle) (fwk.Plugin, error) {
			decoded, err := arguments(name, args)
			if err != nil {
				return nil, err
			}
			own.Handle = h
			return factory(ctx, decoded, own)
		}}
}

// handle is the Handle with what kumiki does not have.
type handle struct {
	fwk.Handle
	devices fwk.SharedDRAManager
	volumes fwk.CSIManager
}

func (h handle) SharedDRAManager() fwk.SharedDRAManager { return h.devices }
func (h handle) SharedCSIManager() fwk.CSIManager       { return h.volumes }

// arguments decodes the arguments of a plugin by upstream's scheme, with its defaults.
func arguments(name string, args apiruntime.Object) (apiruntime.Object, error) {
	text := []byte("{}")
	if given, is := args.(*apiruntime.Unknown); is {
		text = given.Raw
	}
	kind := configv1.SchemeGroupVersion.WithKind(name + "Args")
	decoded, _, err := scheme.Codecs.UniversalDecoder().Decode(text, &kind, nil)
	if apiruntime.IsNotRegisteredError(err) {
		return nil, nil
	}
	return decoded, err
}
