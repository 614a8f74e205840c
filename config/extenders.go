// SPDX-License-Identifier: Apache-2.0

package config

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	configv1 "k8s.io/kube-scheduler/config/v1"
)

// DefaultExtenderTimeout is the time-out of a call to an extender if the file does not set one (upstream:
// DefaultExtenderTimeout in pkg/scheduler/extender.go).
const DefaultExtenderTimeout = 5 * time.Second

// extenders defaults and validates extenders (upstream: validateExtenders, and the checks of NewHTTPExtender).
func (r *report) extenders(in []configv1.Extender) []configv1.Extender {
	if len(in) == 0 {
		return nil
	}
	out := make([]configv1.Extender, len(in))
	binders := 0
	managed := map[string]bool{} // resource -> managed by an extender
	for i := range in {
		in[i].DeepCopyInto(&out[i])
		e, path := &out[i], fmt.Sprintf("extenders[%d]", i)
		if e.HTTPTimeout.Duration == 0 {
			e.HTTPTimeout.Duration = DefaultExtenderTimeout
		}
		if e.BindVerb != "" {
			binders++
		}
		r.checkExtender(path, e)
		for j, resource := range e.ManagedResources {
			r.checkManaged(fmt.Sprintf("%s.managedResources[%d].name", path, j), resource.Name, managed)
		}
	}
	if binders > 1 {
		r.add("extenders", "only one extender can bind, got %d", binders)
	}
	return out
}

func (r *report) checkExtender(path string, e *configv1.Extender) {
	if e.PrioritizeVerb != "" && e.Weight <= 0 {
		r.add(path+".weight", "must be above 0 for an extender that prioritizes, got %d", e.Weight)
	}
	if e.HTTPTimeout.Duration < 0 {
		r.add(path+".httpTimeout", "must not be negative, got %v", e.HTTPTimeout.Duration)
	}
	if u, err := url.Parse(e.URLPrefix); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		r.warn(path+".urlPrefix", "%q is no URL of http or https, so every call will fail", e.URLPrefix)
	}
	if e.FilterVerb == "" && e.PrioritizeVerb == "" && e.BindVerb == "" && e.PreemptVerb == "" {
		r.warn(path, "an extender without a verb is never called")
	}
	if e.TLSConfig != nil {
		r.checkTLS(path+".tlsConfig", e.TLSConfig)
	}
}

// checkTLS checks the settings in the file. Files that it names are read when the scheduler starts.
func (r *report) checkTLS(path string, t *configv1.ExtenderTLSConfig) {
	if t.Insecure && (len(t.CAData) > 0 || t.CAFile != "") {
		r.add(path+".insecure", "must not be true where root certificates are given")
	} else if len(t.CAData) > 0 && !x509.NewCertPool().AppendCertsFromPEM(t.CAData) {
		r.add(path+".caData", "holds no certificate in PEM")
	}
	cert, key := len(t.CertData) > 0 || t.CertFile != "", len(t.KeyData) > 0 || t.KeyFile != ""
	switch {
	case cert != key:
		r.warn(path, "a client certificate needs both a certificate and a key; the one that is given has no effect")
	case len(t.CertData) > 0 && len(t.KeyData) > 0:
		if _, err := tls.X509KeyPair(t.CertData, t.KeyData); err != nil {
			r.add(path+".certData", "certificate and key do not work together: %v", err)
		}
	}
}

// checkManaged checks the name of a resource that an extender manages. No two extenders may manage one.
func (r *report) checkManaged(path, name string, managed map[string]bool) {
	if wrong := validation.IsQualifiedName(name); len(wrong) > 0 {
		r.add(path, "%q is no resource name: %s", name, strings.Join(wrong, "; "))
	} else if !extended(name) {
		r.add(path, "%q is no extended resource", name)
	}
	if managed[name] {
		r.add(path, "%q is managed twice", name)
	}
	managed[name] = true
}

// extended reports whether a qualified name is that of an extended resource: outside of kubernetes.io, and valid with
// the prefix of a quota (upstream: IsExtendedResourceName in pkg/apis/core/v1/helper).
func extended(name string) bool {
	native := !strings.Contains(name, "/") || strings.Contains(name, v1.ResourceDefaultNamespacePrefix)
	if native || strings.HasPrefix(name, v1.DefaultResourceRequestsPrefix) {
		return false
	}
	return len(validation.IsQualifiedName(v1.DefaultResourceRequestsPrefix+name)) == 0
}

// ignoreManaged makes NodeResourcesFit ignore the resources that extenders manage. Upstream replaces the plugin's own
// list by theirs, in every profile (buildExtenders in pkg/scheduler/scheduler.go).
func ignoreManaged(profiles []Profile, extenders []configv1.Extender) {
	var ignored []string
	for _, e := range extenders {
		for _, resource := range e.ManagedResources {
			if resource.IgnoredByScheduler {
				ignored = append(ignored, resource.Name)
			}
		}
	}
	if len(ignored) == 0 {
		return
	}
	for i := range profiles {
		profiles[i].Args.NodeResourcesFit.IgnoredResources = slices.Clone(ignored)
	}
}
