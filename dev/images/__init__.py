"""Build Sandyard's container images: one program, with buildah or Docker, only what changed.

``catalog`` says what the images are made of, ``base`` and ``wheels`` fetch it, ``context`` lays it out and names it
by its content, ``engine`` builds it, ``layout`` keeps the results, ``node`` and ``registry`` hand them on.
"""
