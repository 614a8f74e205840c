// SPDX-License-Identifier: Apache-2.0

package ecosystem

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Component describes a controller of another project. Config, Args and Env are templates (text/template) over Values.
type Component struct {
	// Name is that of the module ecosystem/NAME and of the program in bin/ecosystem.
	Name string
	// Package is the main package that is built, Module the module whose directory has the manifests.
	Package, Module string
	// Kustomizations are directories, and Manifests patterns of files, relative to the directory of Module.
	Kustomizations, Manifests []string
	// Objects are manifests that the module does not have in this form, with the reason beside them.
	Objects string
	// Namespace is created, and all namespaced objects of Kustomizations are moved to it, unless it is empty.
	Namespace string
	// ServiceAccount is the identity of the process; empty means the administrator's, with the reason beside it.
	ServiceAccount string
	// Kinds are installed besides those of installed.
	Kinds []string
	// Edit changes an object before it is installed, and reports whether it is installed. It may be nil.
	Edit func(o *unstructured.Unstructured) bool
	// CertificateNames are DNS names that the component wants in its serving certificate.
	CertificateNames []string
	// CertificateSecret is a Secret of Namespace that gets the certificate and its key, as authority too. It is set for
	// a component that manages the certificates of its webhooks itself: the component takes what it finds there,
	// writes the bundle into its webhook configurations, and waits for those. So they are installed before it starts.
	CertificateSecret string
	// Config is the component's configuration, written to Values.ConfigFile; it may be empty.
	Config string
	// Args and Env are the flags and the variables (NAME=value) of the process. KUBECONFIG and TMPDIR are always set.
	Args, Env []string
	// Ready is the path on Values.HealthPort that answers 200 when the component works; empty: nothing is asked.
	Ready string
}

// Values are what the templates of a component can name.
type Values struct {
	// Dir is the component's directory; the other paths are in it.
	Dir, Kubeconfig, ConfigFile string
	// CertDir holds tls.crt, tls.key and ca.crt. It is also the default of controller-runtime below TMPDIR, for
	// components that cannot be given a directory.
	CertDir string
	// The ports are free ones on 127.0.0.1.
	WebhookPort, HealthPort, MetricsPort int
	// ModuleDir is the directory of the component's module.
	ModuleDir string
}

// All lists the components.
func All() []Component {
	return []Component{JobSet, Kueue, LeaderWorkerSet, Trainer, Karpenter, Descheduler, Ray}
}

// Named returns the component with a name.
func Named(name string) (Component, error) {
	all := All()
	i := slices.IndexFunc(all, func(c Component) bool { return c.Name == name })
	if i < 0 {
		var names []string
		for _, c := range all {
			names = append(names, c.Name)
		}
		return Component{}, fmt.Errorf("no component %q; there are %s", name, strings.Join(names, ", "))
	}
	return all[i], nil
}
