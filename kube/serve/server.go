// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	goruntime "runtime"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	genericapifilters "k8s.io/apiserver/pkg/endpoints/filters"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/server"
	genericfilters "k8s.io/apiserver/pkg/server/filters"
	"k8s.io/apiserver/pkg/server/flagz"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/server/routes"
	"k8s.io/apiserver/pkg/server/statusz"
	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/client-go/kubernetes/scheme"
	compbasecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/component-base/logs"
	"k8s.io/component-base/metrics/legacyregistry"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // counts requests and leadership
	"k8s.io/component-base/metrics/prometheus/slis"
	_ "k8s.io/component-base/metrics/prometheus/version" // tells the build
)

// DefaultPort is kube-scheduler's.
const DefaultPort = 10259

// component is the name under which the endpoints know the process.
const component = "kube-scheduler"

// Options say where the scheduler serves, and who may read. They are the options of kube-scheduler.
type Options struct {
	Secure         *options.SecureServingOptions
	Authentication *options.DelegatingAuthenticationOptions
	Authorization  *options.DelegatingAuthorizationOptions
	// Profiling serves /debug/pprof; ContentionProfiling also counts blocking.
	Profiling, ContentionProfiling bool
	// Config is what /configz shows: the configuration as it counts, without keys. Nil shows none.
	Config runtime.Object
	// Flagz and Statusz serve /flagz and /statusz (upstream: gates ComponentFlagz and ComponentStatusz).
	Flagz, Statusz bool
	// Version is what /statusz and /version tell; nil is that of the libraries.
	Version compbasecompatibility.EffectiveVersion
	// Flags are what /flagz shows; without them it is not served.
	Flags flagz.Reader
}

// DefaultOptions are kube-scheduler's: 0.0.0.0:10259, a certificate made at start, and life goes on when the cluster
// does not tell how to authenticate.
func DefaultOptions() Options {
	o := Options{
		Secure:         options.NewSecureServingOptions(),
		Authentication: options.NewDelegatingAuthenticationOptions(),
		Authorization:  options.NewDelegatingAuthorizationOptions(),
		Flagz:          true,
		Statusz:        true,
	}
	o.Secure.ServerCert.CertDirectory = ""
	o.Secure.ServerCert.PairName = "kube-scheduler"
	o.Secure.BindPort = DefaultPort
	o.Authentication.TolerateInClusterLookupFailure = true
	o.Authentication.RemoteKubeConfigFileOptional = true
	o.Authorization.RemoteKubeConfigFileOptional = true
	return o
}

// Server answers over https: health to everyone, the rest to users that the API server authorizes.
type Server struct {
	info     *server.SecureServingInfo
	authn    server.AuthenticationInfo
	authz    server.AuthorizationInfo
	opts     Options
	endpoint Endpoint
	stop     chan struct{}
	stopped  <-chan struct{}
	closed   <-chan struct{}
}

// NewServer binds the port and makes a certificate where none is given. It returns nil when the port is 0, which turns
// serving off.
func NewServer(o Options) (*Server, error) {
	if o.Secure.BindPort == 0 && o.Secure.Listener == nil {
		return nil, nil
	}
	host, err := utilnet.ResolveBindAddress(o.Secure.BindAddress)
	if err != nil || o.Secure.BindAddress.IsLoopback() {
		host = o.Secure.BindAddress // no route out: only this machine can come in
	}
	if host.IsUnspecified() {
		host = net.IPv4(127, 0, 0, 1)
	}
	loopback := []net.IP{net.IPv4(127, 0, 0, 1), host}
	if err := o.Secure.MaybeDefaultWithSelfSignedCerts("localhost", nil, loopback); err != nil {
		return nil, fmt.Errorf("serving certificate: %w", err)
	}
	s := &Server{opts: o, stop: make(chan struct{})}
	if err := o.Secure.ApplyTo(&s.info); err != nil {
		return nil, fmt.Errorf("serving on %s port %d: %w", o.Secure.BindAddress, o.Secure.BindPort, err)
	}
	if err := s.delegate(); err != nil {
		s.info.Listener.Close()
		return nil, err
	}
	_, port, err := net.SplitHostPort(s.info.Listener.Addr().String())
	if err != nil {
		return nil, fmt.Errorf("address of the listener: %w", err)
	}
	s.endpoint.Address = net.JoinHostPort(host.String(), port)
	if made := o.Secure.ServerCert.GeneratedCert; made != nil {
		s.endpoint.CA, _ = made.CurrentCertKeyContent()
	}
	return s, nil
}

// delegate sets up authentication and authorization by the API server.
func (s *Server) delegate() error {
	if err := s.opts.Authentication.ApplyTo(&s.authn, s.info, nil); err != nil {
		return fmt.Errorf("delegated authentication: %w", err)
	}
	if err := s.opts.Authorization.ApplyTo(&s.authz); err != nil {
		return fmt.Errorf("delegated authorization: %w", err)
	}
	return nil
}

// Endpoint is where the server answers; its CA is empty when the certificate came from files.
func (s *Server) Endpoint() Endpoint { return s.endpoint }

// Serve begins to answer. extra are further handlers by path; a path that ends in a slash takes everything below. A
// handler that is Narrow also gets requests of identities that may not read its path.
func (s *Server) Serve(h Health, extra map[string]http.Handler) error {
	m := mux.NewPathRecorderMux(component)
	health, live, ready := h.checks()
	healthz.InstallHandler(m, health...)
	healthz.InstallLivezHandler(m, live...)
	healthz.InstallReadyzHandler(m, ready...)
	m.Handle("/metrics", legacyregistry.HandlerWithReset())
	m.Handle("/metrics/resources", ofLeader(PodResources(h.Pods), h.Leads))
	m.Handle("/configz", configz(s.opts.Config))
	m.Handle("/version", versionOf(s.version()))
	slis.SLIMetricsWithReset{}.Install(m)
	if s.opts.Profiling {
		routes.Profiling{}.Install(m)
		if s.opts.ContentionProfiling {
			goruntime.SetBlockProfileRate(1)
		}
		routes.DebugFlags{}.Install(m, "v", routes.StringFlagPutHandler(logs.GlogSetter))
	}
	for path, handler := range extra {
		if strings.HasSuffix(path, "/") {
			m.HandlePrefix(path, handler)
		} else {
			m.Handle(path, handler)
		}
	}
	if s.opts.Flagz && s.opts.Flags != nil {
		flagz.Install(m, component, s.opts.Flags)
	}
	if s.opts.Statusz { // last: it lists the others
		statusz.Install(m, component, statusz.NewRegistry(s.version(), statusz.WithListedPaths(m.ListedPaths())))
	}
	var err error
	s.stopped, s.closed, err = s.info.Serve(s.guard(m, extra), 5*time.Second, s.stop)
	if err != nil {
		return fmt.Errorf("serving on %s: %w", s.endpoint.Address, err)
	}
	return nil
}

func (s *Server) version() compbasecompatibility.EffectiveVersion {
	if s.opts.Version == nil {
		return compatibility.DefaultBuildEffectiveVersion()
	}
	return s.opts.Version
}

// versionOf tells, as an API server does, which version this one stands in for and which it emulates.
func versionOf(v compbasecompatibility.EffectiveVersion) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(v.Info()) // an error here means that the reader went away
	})
}

// guard puts authentication and authorization before a handler, in kube-scheduler's order.
func (s *Server) guard(h http.Handler, extra map[string]http.Handler) http.Handler {
	resolver := &apirequest.RequestInfoFactory{}
	h = s.authorize(h, extra)
	h = genericapifilters.WithAuthentication(h, s.authn.Authenticator, genericapifilters.Unauthorized(scheme.Codecs),
		nil, nil)
	h = genericapifilters.WithRequestInfo(h, resolver)
	h = genericapifilters.WithCacheControl(h)
	h = genericfilters.WithHTTPLogging(h)
	return genericfilters.WithPanicRecovery(h, resolver)
}

// Stop ends the server and waits for requests under way, for five seconds at most.
func (s *Server) Stop() {
	close(s.stop)
	if s.stopped == nil {
		s.info.Listener.Close()
		return
	}
	<-s.closed
	<-s.stopped
}
