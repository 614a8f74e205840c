// SPDX-License-Identifier: Apache-2.0

package app

import (
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	configv1 "k8s.io/kube-scheduler/config/v1"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
)

// arguments decodes the arguments of a plugin as upstream does: if NAMEArgs is in the scheme, strictly into the
// internal type, with its defaults, also where the file has none; otherwise they stay a *runtime.Unknown, or nil.
func arguments(name string, args apiruntime.Object) (apiruntime.Object, error) {
	var text []byte
	if unknown, is := args.(*apiruntime.Unknown); is {
		text = unknown.Raw
	}
	kind := configv1.SchemeGroupVersion.WithKind(name + "Args")
	if len(text) == 0 {
		text = []byte("{}") // all defaults
	}
	decoded, _, err := scheme.Codecs.UniversalDecoder().Decode(text, &kind, nil)
	if apiruntime.IsNotRegisteredError(err) {
		return args, nil
	}
	return decoded, err
}
