"""SandboxClass: what the administrator allows. A script chooses no image, index, certificate or command."""

from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import ConfigDict, Field

from sandyard_api.class_limits import TIMEOUT_RULES, ByteLimits, ClassResources, Queue, Timeouts
from sandyard_api.conditions import Conditions, Metadata
from sandyard_api.fields import DataKey, LocalRef, ObjectName, Text
from sandyard_api.limits import DEPENDENCIES, LABEL_CHARACTERS, MAX_DEPENDENCIES, MIB, PACKAGES
from sandyard_api.network import MAX_PEERS, Cidr, Egress, Ports
from sandyard_api.observed import Packages
from sandyard_api.scheduling import Affinity, Labels, LabelSelector, Toleration
from sandyard_api.schema import ONE_VALUE, UNIQUE, Rule, SpecModel, StatusModel, keyed_by, rules

IMAGE_CHARACTERS: Final = 1024
URL_CHARACTERS: Final = 2048
CA_CHARACTERS: Final = MIB // 4
NAME_PATTERN: Final = r"^[a-z0-9*]([-a-z0-9*]*[a-z0-9*])?$"  # a normalised name in which * stands for anything
ANNOTATION_CHARACTERS: Final = 4096
MAX_ENTRIES: Final = 64


class ImagePolicy(StrEnum):
    """What may name the image."""

    REQUIRE_DIGEST = "RequireDigest"
    ALLOW_TAG = "AllowTag"


class PullPolicy(StrEnum):
    """When the node pulls the image, as in a container."""

    ALWAYS = "Always"
    IF_NOT_PRESENT = "IfNotPresent"
    NEVER = "Never"


class UserNamespaces(StrEnum):
    """Whether pods get a user namespace of their own (hostUsers: false)."""

    REQUIRED = "Required"
    PREFERRED = "Preferred"
    OFF = "Off"


class IsolationFeature(StrEnum):
    """An isolation that can be required; without it a task ends IsolationUnavailable."""

    SECCOMP = "seccomp"
    NETWORK_POLICY = "networkPolicy"
    LANDLOCK = "landlock"


class PodMetadata(SpecModel):
    """Labels and annotations for the pods of the class."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            *(
                Rule(
                    f"!has(self.{field}) || !self.{field}.exists(key, key.startsWith('sandyard.dev/') "
                    "|| key == 'app.kubernetes.io/managed-by')",
                    "sandyard.dev/ and app.kubernetes.io/managed-by are set by the operator",
                    field,
                )
                for field in ("labels", "annotations")
            )
        )
    )

    labels: Labels = Field(default_factory=dict, description="Labels.")
    annotations: Annotated[
        dict[str, Annotated[str, Field(max_length=ANNOTATION_CHARACTERS)]], Field(max_length=MAX_ENTRIES)
    ] = Field(default_factory=dict, description="Annotations.")


class CredentialsRef(SpecModel):
    """A key of a Secret in the operator's namespace."""

    model_config = ConfigDict(json_schema_extra=ONE_VALUE)

    name: ObjectName = Field(description="Name of the Secret.")
    key: DataKey = Field(description="Key that holds a netrc file.")


class IndexEgress(SpecModel):
    """Where the index is, for the network policy that is in force during an install and at no other time."""

    cidrs: Annotated[tuple[Cidr, ...], Field(max_length=MAX_PEERS)] = Field(
        default=(), description="Address ranges of an index outside the cluster."
    )
    pod_selector: LabelSelector | None = Field(default=None, description="Pods of an index in the cluster.")
    namespace_selector: LabelSelector | None = Field(
        default=None, description="Namespaces of those pods; every one where absent."
    )
    ports: Ports = Field(default=(), description="Its ports; all of them where the list is empty.")


class Index(SpecModel):
    """The one package index (PEP 503 or 691) that dependencies come from."""

    url: str = Field(
        min_length=1,
        max_length=URL_CHARACTERS,
        json_schema_extra=rules(
            Rule(
                "isURL(self) && (url(self).getScheme() == 'https' || url(self).getScheme() == 'http')",
                "must be an http or https URL",
            ),
            Rule("!self.contains('@')", "credentials belong into credentialsSecretRef, never into the URL"),
        ),
        description="URL of its simple API.",
    )
    ca_bundle: str = Field(
        default="",
        max_length=CA_CHARACTERS,
        description="PEM certificates that its server's is checked against.",
    )
    credentials_secret_ref: CredentialsRef | None = Field(
        default=None,
        description="netrc for the index, in a Secret of the operator's namespace. Pushed to the agent for "
        "one install; never mounted, never copied to a tenant.",
    )
    egress: IndexEgress = Field(default=IndexEgress(), description="What the network policy opens for an install.")


PackageNames = Annotated[
    tuple[Annotated[str, Field(min_length=1, max_length=128, pattern=NAME_PATTERN)], ...],
    Field(max_length=PACKAGES, json_schema_extra=UNIQUE),
]


class DependencyRules(SpecModel):
    """Which dependencies a script may declare."""

    max_items: int = Field(
        default=DEPENDENCIES, ge=0, le=MAX_DEPENDENCIES, description="How many; more is LimitExceeded."
    )
    allow: PackageNames = Field(
        default=(),
        description="Normalised names that may be declared, * standing for anything; every one where empty.",
    )
    deny: PackageNames = Field(default=(), description="Normalised names that may not be declared, even where allowed.")
    require_hashes: bool = Field(
        default=False,
        description="Every dependency pins one version with ==, and only files whose SHA-256 the index "
        "announces are installed.",
    )


class ClassNetwork(SpecModel):
    """What tasks of the class may reach."""

    allowed_egress: Egress = Field(
        default=(),
        description="Ranges and ports that tasks may ask for; none by default. DNS may be asked for where "
        "there is one. Needs nodes with Landlock ABI 4 or newer.",
    )


class IsolationRules(SpecModel):
    """What must be in force before a script starts."""

    require: Annotated[tuple[IsolationFeature, ...], Field(max_length=8, json_schema_extra=UNIQUE)] = Field(
        default=(IsolationFeature.SECCOMP, IsolationFeature.NETWORK_POLICY),
        description="seccomp, networkPolicy, landlock; the first two by default.",
    )


class ClassSpec(SpecModel):
    """What tasks and sessions of this class get and may ask for."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            Rule(
                "self.imagePolicy == 'AllowTag' || self.image.matches('@sha256:[0-9a-f]{64}$')",
                "image must end in @sha256:<digest>, or imagePolicy be AllowTag",
                "image",
            ),
            *TIMEOUT_RULES,
        )
    )

    image: str = Field(
        min_length=1,
        max_length=IMAGE_CHARACTERS,
        description="Runtime image of both containers, by digest; by tag only with imagePolicy AllowTag.",
    )
    image_policy: ImagePolicy = Field(
        default=ImagePolicy.REQUIRE_DIGEST, description="RequireDigest, or AllowTag for development."
    )
    image_pull_policy: PullPolicy = Field(default=PullPolicy.IF_NOT_PRESENT, description="As in a container.")
    image_pull_secrets: Annotated[tuple[LocalRef, ...], Field(max_length=8, json_schema_extra=keyed_by("name"))] = (
        Field(default=(), description="Secrets in the task's own namespace for pulling the image.")
    )
    allowed_namespaces: LabelSelector | None = Field(
        default=None, description="Namespaces that may use the class; every one where absent."
    )
    node_selector: Labels = Field(default_factory=dict, description="Labels of the nodes, as in a pod.")
    tolerations: Annotated[tuple[Toleration, ...], Field(max_length=MAX_ENTRIES)] = Field(
        default=(), description="Taints that the pods tolerate, as in a pod."
    )
    affinity: Affinity | None = Field(default=None, description="Scheduling constraints, as in a pod.")
    priority_class_name: ObjectName | None = Field(default=None, description="PriorityClass of the pods.")
    pod_metadata: PodMetadata | None = Field(default=None, description="Labels and annotations for the pods.")
    runtime_class_name: ObjectName | None = Field(
        default=None, description="RuntimeClass of the pods, such as one of gVisor or Kata for hostile code."
    )
    index: Index | None = Field(
        default=None, description="The package index; without it only what the image holds can be declared."
    )
    dependencies: DependencyRules = Field(
        default=DependencyRules(), description="Which dependencies a script may declare."
    )
    limits: ByteLimits = Field(default=ByteLimits(), description="Sizes and counts.")
    resources: ClassResources = Field(
        default=ClassResources(), description="Compute resources: what a task gets, and at most."
    )
    timeouts: Timeouts = Field(default=Timeouts(), description="Seconds: what a task gets, and at most.")
    queue: Queue = Field(default=Queue(), description="How many tasks of one namespace run and wait.")
    network: ClassNetwork = Field(default=ClassNetwork(), description="What tasks may reach.")
    allow_secret_env: bool = Field(
        default=False, description="Whether env may take values from Secrets of the namespace."
    )
    user_namespaces: UserNamespaces = Field(
        default=UserNamespaces.PREFERRED,
        description="Whether pods get a user namespace: Required, Preferred (where all nodes of the class can) or Off.",
    )
    isolation: IsolationRules = Field(
        default=IsolationRules(), description="What must be in force before a script starts."
    )


class ClassStatus(StatusModel):
    """What is known of the class's image."""

    observed_generation: int | None = Field(
        default=None, ge=0, description="The metadata.generation that this status was derived from."
    )
    conditions: Conditions = Field(default=(), description="Ready.")
    python: Text = Field(default="", description="Version of the image's Python, as an agent told it.")
    packages: Packages = Field(default=(), description="Packages that the image holds.")


class SandboxClass(StatusModel):
    """What the administrator allows tasks and sessions that name it."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            Rule(
                f"size(self.metadata.name) <= {LABEL_CHARACTERS}",
                f"a class's name is at most {LABEL_CHARACTERS} characters: it becomes a label",
            )
        )
    )

    api_version: Literal["sandyard.dev/v1alpha1"] = "sandyard.dev/v1alpha1"
    kind: Literal["SandboxClass"] = "SandboxClass"
    metadata: Metadata
    spec: ClassSpec = Field(description="What tasks and sessions get and may ask for.")
    status: ClassStatus | None = Field(default=None, description="What is known of the image.")
