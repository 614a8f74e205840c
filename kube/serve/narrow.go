// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapifilters "k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/client-go/kubernetes/scheme"
)

// Narrow is a handler that also answers identities which may not read its path: it asks for each request what they may
// do with pods, and answers accordingly.
type Narrow interface {
	http.Handler
	// ServeNarrow answers such an identity. may reports whether it may use a verb on a pod, or with an empty name on
	// all pods of a namespace; denied is the reason if it may not.
	ServeNarrow(w http.ResponseWriter, r *http.Request,
		may func(ctx context.Context, verb, namespace, name string) (allowed bool, denied string, err error))
}

// authorize puts authorization before a handler. Requests below the path of a Narrow handler that the identity may not
// read go to ServeNarrow; all others are denied as kube-scheduler does. The delegated authorizer caches its answers
// (flags --authorization-webhook-cache-authorized-ttl and -unauthorized-ttl), so a right that was taken away counts
// for ten seconds more by default.
func (s *Server) authorize(whole http.Handler, extra map[string]http.Handler) http.Handler {
	strict := genericapifilters.WithAuthorization(whole, s.authz.Authorizer, scheme.Codecs)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		narrow := narrowOf(extra, r.URL.Path)
		if narrow == nil {
			strict.ServeHTTP(w, r)
			return
		}
		path, err := genericapifilters.GetAuthorizerAttributes(r.Context())
		if err != nil {
			responsewriters.InternalError(w, r, err)
			return
		}
		identity := path.GetUser()
		decision, _, err := s.authz.Authorizer.Authorize(r.Context(), path)
		switch {
		case decision == authorizer.DecisionAllow:
			whole.ServeHTTP(w, r)
		case err != nil || identity == nil:
			responsewriters.InternalError(w, r, errors.Join(err, errNoAnswer))
		default:
			narrow.ServeNarrow(w, r, func(ctx context.Context, verb, namespace, name string) (bool, string, error) {
				return s.mayUsePods(ctx, identity, verb, namespace, name)
			})
		}
	})
}

var errNoAnswer = errors.New("the API server did not say who may read the path")

// narrowOf returns the handler of the longest path that covers a request, if it is a Narrow one.
func narrowOf(extra map[string]http.Handler, path string) Narrow {
	var best string
	var found http.Handler
	for prefix, handler := range extra { // order: the longest prefix wins, and no two are equal
		covers := path == prefix || strings.HasSuffix(prefix, "/") && strings.HasPrefix(path, prefix)
		if covers && len(prefix) > len(best) {
			best, found = prefix, handler
		}
	}
	narrow, _ := found.(Narrow)
	return narrow
}

// mayUsePods asks the API server whether an identity may use a verb on pods.
func (s *Server) mayUsePods(ctx context.Context, identity user.Info,
	verb, namespace, name string) (bool, string, error) {
	decision, _, err := s.authz.Authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: identity, Verb: verb, Namespace: namespace, APIVersion: "v1", Resource: "pods", Name: name,
		ResourceRequest: true,
	})
	if decision == authorizer.DecisionAllow {
		return true, "", nil
	}
	what := "pods"
	if name != "" {
		what = fmt.Sprintf("pod %q", name)
	}
	return false, fmt.Sprintf("user %q may not %s %s in namespace %q, and may not read all answers (get on the "+
		"nonResourceURL /kumiki/*)", identity.GetName(), verb, what, namespace), err
}
