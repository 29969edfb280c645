"""The only room that talks to the API server: raw JSON over HTTP, compare-and-swap writes, events, the Lease.

``connect`` opens it; what it keeps are the doors in ``ports``. Every error becomes one of theirs. May import
kubernetes (for who we are and where the server is), aiohttp, orjson, decide and ports; never kopf.

What it asks of the API server, and so what RBAC has to grant. In all namespaces:

============================  ==========================================  =======================================
group                         resource                                    verbs
============================  ==========================================  =======================================
sandyard.dev                  sandboxtasks                                get list watch delete
sandyard.dev                  sandboxclasses                              get list watch
sandyard.dev                  sandboxtasks/status sandboxclasses/status   patch
sandyard.dev                  sandboxtasks/finalizers                     update (ownerReferences that block)
core                          pods                                        get list watch create patch delete
core                          secrets named sandyard-agent-tls            get create patch (by server-side apply)
core                          secrets                                     get, only with operator.allowSecretEnv
core                          configmaps namespaces                       get
core                          nodes                                       list
networking.k8s.io             networkpolicies                             get list create patch
networking.k8s.io             servicecidrs                                list
events.k8s.io                 events                                      create patch
============================  ==========================================  =======================================

In the operator's own namespace: secrets get; secrets named sandyard-authority create patch (by server-side
apply); leases named sandyard-operator get create patch (likewise).
"""
