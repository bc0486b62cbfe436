// Package aggregator is the aggregated API server of
// search.task.example.example.com.
//
// [Run] is all there is to call. It knows the cluster as a rest.Config and runs
// with an identity of its own: it reads what it joins, asks the API server who
// a caller is and what they may do, and writes one ConfigMap (see package
// sequence). Requests come through kube-apiserver's aggregation layer, which
// proves itself by the front-proxy certificate.
//
// How the parts fit: package api/v1 has the types; combinedtask computes one
// resource and serves it from a view, which has the semantics of list and watch;
// stored keeps resources of its own in an etcd endpoint, which may depend on one
// another (package relations); details searches (package fulltext); this package puts the resources behind a generic API server. Another resource
// is one more entry in the table in resources.go, or, from another program, a
// [Kind].
package aggregator
